#!/usr/bin/env python3
"""gxp's collectives beside those of MPI, gloo and DeepSpeed, in one sitting: the programs take turns, every figure is the
median over the rounds of each program's own median, all in place, float32, slowest rank after a barrier.

  bench/collectives_vs_peers.py --gxp build/release/cmd/gxp --ranks 2 --peers PROGRAMS [--op all_reduce] [--transport shm]

PROGRAMS is a directory with what is to be compared; what is missing is left out:
  mpi_coll_bench.openmpi, mpi_coll_bench.mpich   print "BYTES REPS MEDIAN_US ..." lines; options --op --min --max --factor --inplace
  gloo_coll_bench.py, deepspeed_shm_bench.py     the same, run by --python
  shm_limit                                      the yardstick of the machine: "BYTES REPS DIRECT_US BUSBW STAGED_US ..."
Prints a table in Markdown; --svg FILE draws it.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys

OPENMPI_NAMES = {"all_reduce": "allreduce", "all_gather": "allgather", "alltoall": "alltoall"}
COLOURS = ["#1b6ca8", "#5aa9e6", "#d1495b", "#edae49", "#66a182", "#8d6a9f", "#444444"]


def run(command, env=None, timeout=300):
    full = dict(os.environ, **(env or {}))
    try:
        done = subprocess.run(command, env=full, capture_output=True, text=True, timeout=timeout, check=False)
    except subprocess.TimeoutExpired:
        print(f"left out, too slow: {' '.join(command)}", file=sys.stderr)
        return ""
    if done.returncode != 0:
        print(f"{' '.join(command)}: {done.stderr.strip()[-300:]}", file=sys.stderr)
        return ""
    return done.stdout


def column(text, index):
    rows = [line.split() for line in text.splitlines() if line.strip() and line.split()[0].isdigit()]
    return {int(row[0]): float(row[index]) for row in rows}


class Programs:
    def __init__(self, options):
        self.o = options
        self.mpi_op = OPENMPI_NAMES.get(options.op, options.op)
        self.crowded = options.ranks > os.cpu_count()

    def gxp(self, memory):
        o = self.o
        times = {}
        for size in o.sizes:
            command = [o.gxp, "allreduce-test", "--nproc", str(o.ranks), "--op", o.op, "-b", str(size), "-e", str(size),
                       "-c", "0", "--memory", memory, "--transport", o.transport, "--format", "json"] + o.gxp_options
            text = run(command)
            for row in json.loads(text)["results"] if text else []:
                times[size] = row["in_place"]["p50_us"]
        return times

    def mpi(self, which):
        o = self.o
        program = os.path.join(o.peers, "mpi_coll_bench." + which)
        if which == "openmpi":
            command = ["mpirun.openmpi", "--allow-run-as-root", "-np", str(o.ranks)]
            command += ["--oversubscribe"] if self.crowded else []
            command += ["--mca", "pml", "ob1", "--mca", "btl", "self,tcp"] if o.transport == "tcp" else []
            env = {}
        else:
            command = ["mpirun.mpich", "-np", str(o.ranks)]
            env = {"MPIR_CVAR_NOLOCAL": "1", "UCX_TLS": "tcp,self", "UCX_NET_DEVICES": "lo"} if o.transport == "tcp" else {}
        few = ["--reps", "20"] if which == "mpich" and self.crowded else []
        times = {}
        for size in o.sizes:
            text = run(command + [program, "--op", self.mpi_op, "--inplace", "--min", str(size), "--max", str(size)] + few, env)
            times.update(column(text, 2))
        return times

    def gloo(self):
        o = self.o
        times = {}
        for size in o.sizes:
            times.update(column(run([o.python, os.path.join(o.peers, "gloo_coll_bench.py"), "--ranks", str(o.ranks), "--op",
                                     self.mpi_op, "--min", str(size), "--max", str(size)]), 2))
        return times

    def deepspeed(self):
        o = self.o
        command = [o.python, os.path.join(o.peers, "deepspeed_shm_bench.py"), "--ranks", str(o.ranks)]
        return column(run(command + [str(size) for size in o.sizes]), 2)

    def yardstick(self):
        o = self.o
        text = run([os.path.join(o.peers, "shm_limit"), str(o.ranks)] + [str(size) for size in o.sizes])
        return column(text, 2)

    def all(self):
        o = self.o
        there = lambda name: os.path.exists(os.path.join(o.peers, name))
        programs = {"gxp, ordinary memory": lambda: self.gxp("ordinary")}
        if o.transport != "tcp":
            programs["gxp, communicator memory"] = lambda: self.gxp("communicator")
        for which, name in (("openmpi", "Open MPI"), ("mpich", "MPICH")):
            if there("mpi_coll_bench." + which) and not (which == "mpich" and self.crowded and not o.crowded_mpich):
                programs[name] = lambda which=which: self.mpi(which)
        if o.python and there("gloo_coll_bench.py") and o.op != "alltoall":
            programs["gloo"] = self.gloo
        if o.python and there("deepspeed_shm_bench.py") and o.op == "all_reduce" and o.transport != "tcp":
            programs["DeepSpeed"] = self.deepspeed
        if there("shm_limit") and o.op == "all_reduce" and o.transport != "tcp":
            programs["yardstick"] = self.yardstick
        return {name: program for name, program in programs.items() if name not in o.without}


def measure(options):
    programs = Programs(options).all()
    rounds = {name: [] for name in programs}
    for _ in range(options.rounds):
        for name, program in programs.items():
            rounds[name].append(program())
    medians = {}
    for name, times in rounds.items():
        medians[name] = {size: statistics.median([t[size] for t in times if size in t])
                         for size in options.sizes if any(size in t for t in times)}
    return medians


def size_text(size):
    for unit, bytes_ in (("MiB", 1 << 20), ("KiB", 1 << 10)):
        if size % bytes_ == 0:
            return f"{size // bytes_} {unit}"
    return f"{size} B"


def time_text(us):
    return "" if us is None else f"{us:.2f}" if us < 10 else f"{us:.1f}" if us < 100 else f"{us:,.0f}"


def print_table(options, medians):
    own = [name for name in medians if name.startswith("gxp")]
    peers = [name for name in medians if name not in own and name != "yardstick"]
    marks = ["yardstick"] if "yardstick" in medians else []
    head = own + peers + marks + [f"best peer / {name[5:].split()[0]}" for name in own]
    head += ["yardstick / communicator"] if marks else []
    print(f"{options.op}, {options.ranks} ranks, {options.transport}, in place, us, median of {options.rounds} rounds\n")
    print("| size | " + " | ".join(head) + " |\n" + "|---" * (len(head) + 1) + "|")
    for size in options.sizes:
        value = {name: medians[name].get(size) for name in medians}
        known = [value[name] for name in peers if value[name]]
        cells = [time_text(value[name]) for name in own + peers + marks]
        cells += [f"**{min(known) / value[name]:.2f}**" if known and value[name] else "" for name in own]
        if marks:
            cells.append(f"{value['yardstick'] / value[own[-1]]:.2f}" if value["yardstick"] and value[own[-1]] else "")
        print(f"| {size_text(size)} | " + " | ".join(cells) + " |")


def draw(options, medians):
    """Bus bandwidth over size, both logarithmic."""
    import math
    n = options.ranks
    factor = {"all_reduce": 2 * (n - 1) / n, "broadcast": 1.0}.get(options.op, (n - 1) / n)
    points = {name: [(size, factor * size / us / 1e3) for size, us in sorted(times.items())] for name, times in medians.items()}
    flat = [p for line in points.values() for p in line]
    x0, x1 = (math.log2(f(p[0] for p in flat)) for f in (min, max))
    y0, y1 = (math.log10(f(p[1] for p in flat)) for f in (min, max))
    y0, y1 = math.floor(y0), math.ceil(y1)
    width, height, left, top = 760, 420, 70, 40
    x = lambda size: left + (math.log2(size) - x0) / (x1 - x0) * (width - left - 210)
    y = lambda speed: top + (y1 - math.log10(speed)) / (y1 - y0) * (height - top - 50)
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" font-family="sans-serif" font-size="12">',
           f'<rect width="{width}" height="{height}" fill="white"/>',
           f'<text x="{left}" y="20" font-size="14">{options.op}, {n} ranks, {options.transport}: bus bandwidth, GB/s</text>']
    for decade in range(y0, y1 + 1):
        out.append(f'<line x1="{left}" y1="{y(10**decade):.1f}" x2="{width - 210}" y2="{y(10**decade):.1f}" stroke="#ddd"/>'
                   f'<text x="{left - 8}" y="{y(10**decade) + 4:.1f}" text-anchor="end">{10**decade:g}</text>')
    for size in options.sizes:
        out.append(f'<text x="{x(size):.1f}" y="{height - 30}" text-anchor="middle" font-size="9">{size_text(size)}</text>')
    for i, (name, line) in enumerate(points.items()):
        path = " ".join(f"{x(size):.1f},{y(speed):.1f}" for size, speed in line)
        dash = ' stroke-dasharray="5 4"' if name == "yardstick" else ""
        out.append(f'<polyline points="{path}" fill="none" stroke="{COLOURS[i % len(COLOURS)]}" stroke-width="2"{dash}/>'
                   f'<text x="{width - 200}" y="{top + 18 * i + 10}" fill="{COLOURS[i % len(COLOURS)]}">{name}</text>')
    with open(options.svg, "w", encoding="utf-8") as file:
        file.write("\n".join(out + ["</svg>\n"]))


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--gxp", required=True)
    p.add_argument("--peers", required=True)
    p.add_argument("--python", default="")
    p.add_argument("--ranks", type=int, default=2)
    p.add_argument("--op", default="all_reduce")
    p.add_argument("--transport", default="shm")
    p.add_argument("--rounds", type=int, default=3)
    p.add_argument("--sizes", default="8,1024,65536,1048576,16777216,67108864")
    p.add_argument("--without", default="", help="names of columns, by commas")
    p.add_argument("--crowded-mpich", action="store_true", help="MPICH also with more ranks than cores, where it takes 8 ms a call")
    p.add_argument("--gxp-options", default="")
    p.add_argument("--svg", default="")
    options = p.parse_args()
    options.sizes = [int(size) for size in options.sizes.split(",")]
    options.without = options.without.split(",")
    options.gxp_options = options.gxp_options.split()
    medians = measure(options)
    print_table(options, medians)
    if options.svg:
        draw(options, medians)


if __name__ == "__main__":
    main()
