"""Runs programs under time limits, and keeps a report that is complete after each step."""
import glob
import gzip
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass

from gpu.report import write_markdown

STACKS_S = 10  # for the stacks of a program that hangs
PYTHON = os.environ.get("GXP_CHECK_PYTHON", sys.executable)  # has PyTorch, perhaps


class Failed(Exception):
    """A step's result; its words are the report's. `code`: the program's exit code; None: it did not end in time."""

    def __init__(self, words, code=0):
        super().__init__(words)
        self.code = code


class LeftOut(Exception):
    """Why a step cannot be taken here."""


@dataclass
class Outcome:
    code: int  # None: killed at its limit
    stdout: str
    stderr: str
    seconds: float
    stacks: str = ""

    def how(self):
        if self.code is None:
            return f"did not end in {self.seconds:.0f} s"
        return f"ended with signal {-self.code}" if self.code < 0 else f"ended with exit code {self.code}"

    def said(self, count=4):
        """The last lines of both streams: warnings on one must not hide the error on the other."""
        streams = [last_lines(text, count) for text in (self.stderr, self.stdout) if text.strip()]
        return " || ".join(streams) or "it wrote nothing"


def last_lines(text, count=6):
    return " | ".join(line.strip()[:300] for line in text.strip().splitlines()[-count:])


def library_folders(build):
    """A bundle's, the environment's, those of NVIDIA's Python packages, the driver's and the toolkit's: for gxp's programs alone."""
    folders = [os.path.join(build, "lib")] + [f for f in os.environ.get("LD_LIBRARY_PATH", "").split(":") if f]
    for site in sys.path:
        folders += sorted(glob.glob(os.path.join(site, "nvidia", "*", "lib")))
    folders += ["/usr/local/nvidia/lib64"]
    for pattern in ("/usr/local/cuda*/lib64", "/usr/local/cuda*/extras/CUPTI/lib64"):
        folders += sorted(glob.glob(pattern), reverse=True)
    return [folder for folder in folders if os.path.isdir(folder)]


def find_tool(name):
    """A tool of the driver or the toolkit, wherever it lies; None: nowhere."""
    places = ["/usr/bin", "/usr/local/nvidia/bin"] + sorted(glob.glob("/usr/local/cuda*/bin"), reverse=True)
    return shutil.which(name) or shutil.which(name, path=":".join(places))


def members_of(group):
    """Processes of a process group, the leader first."""
    found = []
    for path in glob.glob("/proc/[0-9]*/stat"):
        try:
            with open(path, encoding="utf-8", errors="replace") as file:
                pid, rest = int(path.split("/")[2]), file.read().rpartition(") ")[2].split()
        except OSError:
            continue  # it has ended
        if int(rest[2]) == group and rest[0] != "Z":
            found.append(pid)
    return sorted(found, key=lambda pid: (pid != group, pid))


def waits_of(pid):
    """Where each thread waits, as the OS tells it."""
    lines = []
    for task in sorted(glob.glob(f"/proc/{pid}/task/*"))[:32]:
        parts = []
        for name in ("comm", "wchan", "syscall"):
            try:
                with open(os.path.join(task, name), encoding="utf-8", errors="replace") as file:
                    parts.append(file.read().strip())
            except OSError:
                parts.append("?")
        lines.append("thread {}: in {}, system call {}".format(*parts))
    return "\n".join(lines)


def stacks_of(group, library_path):
    """Host and GPU stacks of a process group that hangs: of its leader, and of its last member, a rank where there are any."""
    members, texts = members_of(group), []
    end = time.monotonic() + STACKS_S
    debugger = find_tool("cuda-gdb") or find_tool("gdb")
    for pid in dict.fromkeys(members[-1:] + members[:1]):
        texts.append(f"process {pid}\n{waits_of(pid)}")
        left = end - time.monotonic()
        if debugger is None or left < 1:
            continue
        command = [debugger, "-p", str(pid), "-batch", "-ex", "set pagination off", "-ex", "thread apply all bt 12"]
        if debugger.endswith("cuda-gdb"):
            command += ["-ex", "info cuda kernels"]
        with tempfile.TemporaryFile() as out:
            process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT, start_new_session=True,
                                       env={**os.environ, "LD_LIBRARY_PATH": library_path})
            wait_or_kill(process, left)
            texts.append(read(out)[-12000:])
    return "\n".join(texts)


def wait_or_kill(process, limit_s):
    """The exit code, None where it was killed; its process group is gone after it."""
    try:
        return process.wait(limit_s)
    except subprocess.TimeoutExpired:
        return None
    finally:
        kill_group(process)


def kill_group(process):
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    process.wait()


def read(file):
    file.seek(0)
    return file.read().decode(errors="replace")


class Check:
    """`limit_s` of a part begins with begin(). `only` finds the names of the steps that are taken. `patience` is multiplied with every
    limit: less than 1 for dry runs."""

    def __init__(self, out, build, work, only, patience=1.0):
        self.out, self.build, self.work, self.only, self.patience = out, build, work, only, patience
        self.library_path = ":".join(library_folders(build))
        self.results = {"date": time.strftime("%Y-%m-%d"), "command": " ".join(sys.argv), "steps": []}
        self.lock = threading.RLock()  # of the results and the log
        self.part, self.end = "", time.monotonic()
        self.cases = []  # names of test cases, once they are listed

    def begin(self, part, limit_s):
        self.part, self.end = part, time.monotonic() + limit_s

    def left_s(self):
        return self.end - time.monotonic()

    def path(self, *parts):
        return os.path.join(self.build, *parts)

    def start(self, command, limit_s, environment=None):
        """Runs it to its end or limit. Failed only if it cannot be started; may be called by several threads at once."""
        ours = os.path.abspath(command[0]).startswith(self.build + os.sep) or "compute-sanitizer" in command[0]
        environment = {**os.environ, **({"LD_LIBRARY_PATH": self.library_path} if ours else {}), **(environment or {})}
        limit = max(3 * self.patience, min(limit_s * self.patience, self.left_s()))
        begin = time.monotonic()
        with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
            try:
                process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=err, env=environment, start_new_session=True)
            except OSError as error:
                raise Failed(f"start {command[0]}: {error.strerror}") from error
            stacks = ""
            try:
                code = process.wait(limit)
            except subprocess.TimeoutExpired:
                code, stacks = None, stacks_of(process.pid, self.library_path)
            finally:
                kill_group(process)  # its ranks, too
            outcome = Outcome(code, read(out), read(err), time.monotonic() - begin, stacks)
        self.log(command, outcome)
        return outcome

    def run(self, command, limit_s, environment=None):
        """Its stdout. Failed if it ends wrong or not in time."""
        outcome = self.start(command, limit_s, environment)
        if outcome.code != 0:
            raise Failed(f"{os.path.basename(command[0])} {outcome.how()}: {outcome.said()}", outcome.code)
        return outcome.stdout

    def log(self, command, outcome):
        """The whole of it in gpu-check.log.gz; the end of it where it can be read at once."""
        head, tail = f"$ {' '.join(command)}\n", f"({outcome.how()}, {outcome.seconds:.1f} s)\n\n"
        stacks = f"stacks:\n{outcome.stacks}\n" if outcome.stacks else ""
        with self.lock:
            with gzip.open(os.path.join(self.out, "gpu-check.log.gz"), "ab", compresslevel=3) as file:
                file.write(f"{head}{outcome.stdout}{outcome.stderr}{stacks}{tail}".encode())
            with open(os.path.join(self.out, "gpu-check.log"), "a", encoding="utf-8") as file:
                file.write(f"{head}{outcome.stdout[-4000:]}{outcome.stderr[-4000:]}{stacks}{tail}")

    def step(self, name, needs_s, act):
        """`act` returns what the report shows, under its own name. It may fail with results: `note()` keeps
        what there is so far. `needs_s` 0: what every call takes."""
        if not self.only.search(name) and needs_s > 0:
            return
        begin = time.monotonic()
        step = {"part": self.part, "name": name, "status": "ok", "data": {}}
        with self.lock:
            self.results["steps"].append(step)
        try:
            if self.left_s() < needs_s * self.patience:
                raise LeftOut("no time left")
            step["data"].update(act() or {})
        except LeftOut as why:
            step["status"] = f"left out: {why}"
        except Failed as why:
            step["status"] = f"FAILED: {why}"
        except Exception as why:  # what a program wrote is not what is expected: the next step runs
            step["status"] = f"FAILED: {type(why).__name__}: {why}"
        step["seconds"] = round(time.monotonic() - begin, 1)
        self.write()
        print(f"{self.part}: {name}: {step['status']} ({step['seconds']} s)", flush=True)

    def note(self, data):
        """Results of the step that runs now, whatever becomes of it."""
        with self.lock:
            self.results["steps"][-1]["data"].update(data)
            self.write()

    def write(self):
        path, part = os.path.join(self.out, "gpu-check"), os.path.join(self.out, ".part")
        with self.lock:
            with open(part, "w", encoding="utf-8") as file:
                json.dump(self.results, file, indent=1)
            os.replace(part, path + ".json")
            write_markdown(self.results, part)
            os.replace(part, path + ".md")

    def failed(self):
        return any(step["status"].startswith("FAILED") for step in self.results["steps"])
