"""Stands in for a program that gpu_check.py runs: stand_in.py PROGRAM [argument...]. Writes what PROGRAM writes, at once.
GXP_STAND_IN=HOW:PROGRAM[:WORDS] makes that one, where its arguments contain WORDS, warn (on stderr), hang, die, fail as it
does, or write results that lack what is read of them."""
import json
import os
import signal
import sys
import time

CASES = [f"case {i}, of [these] \"tests\"" for i in range(20)]


def value_after(arguments, option):
    return arguments[arguments.index(option) + 1]


def settings(arguments):
    return dict(arguments[i + 1].split("=", 1) for i, word in enumerate(arguments) if word == "--set")


def gxp(arguments, how):
    lacks = how == "lacks"
    if arguments[0] == "--version":
        print("gxp 0.0 (stand-in)")
    elif arguments[0] == "allreduce-test":
        half = {"time_us": 500.0, "busbw": 120.0, "copy_share": 0.75}
        print(json.dumps({"collectives_on": "pinned host memory: as asked" if lacks else "the GPUs' memory", "copy_gb_per_s": 4000.0,
                          "results": [{"size": 64 << 20, "out_of_place": half, "in_place": half}]}))
    elif arguments[0] == "memcalc":
        print(json.dumps({"results": [{} if lacks else {"peak_bytes": 10 << 30}]}))
    else:
        train(arguments, how)


def train(arguments, how):
    sets = settings(arguments)
    if how == "fails" and sets.get("train.cuda_graphs") != "off":
        print("gxp: record a graph: operation not permitted when stream is capturing", file=sys.stderr)
        sys.exit(5)
    if "--time-by-class" in arguments:
        print(json.dumps({"classes": [{"class": "attention", "milliseconds": 2.0, "share": 0.5, "predicted_milliseconds": 2.5, "ratio": 0.8,
                                       "ideal_milliseconds": 1.0}, {"class": "the rest", "milliseconds": 2.0, "share": 0.5}]}))
        return
    run = open(arguments[1], encoding="utf-8").read()
    steps = int(run.split("\nsteps = ")[1].split("\n")[0])
    if "--metrics" not in arguments:
        return
    with open(value_after(arguments, "--metrics"), "w", encoding="utf-8") as file:
        for step in range(steps):
            line = {"step": step, "loss": 10.8 if how == "guesses" else max(8.9, 10.8 - 0.6 * step), "tokens_per_s": 2e5 if "--nproc" in arguments else 4e5,
                    "mfu": 0.4, "peak_bytes": 10 << 30, "driver_bytes": (10 << 30) + (200 << 20)}
            if how == "lacks":
                del line["mfu"]
            file.write(json.dumps(line) + "\n")
    if "GXP_KERNEL_TIMES" in os.environ:
        with open(os.environ["GXP_KERNEL_TIMES"], "w", encoding="utf-8") as file:
            json.dump([{"name": "a kernel", "grid": "132x1x1", "calls": 8, "seconds": 0.02, "idle_seconds": 0.004}], file)


def gxp_cuda_test(arguments, how):
    if "--list-test-names-only" in arguments:
        print("\n".join(CASES))
        sys.exit(len(CASES))
    if how == "fails":
        print("tests/cuda/these_test.cc:12: failed: 1 == 2 for: 1 == 2 with 1 message: 'rows := 3'\nFailed 1 test case, failed 1 assertion.")
        print("gxp: warning: attention by gxp", file=sys.stderr)
        sys.exit(1)
    print("All tests passed (7 assertions in 7 test cases)" if "," in arguments[-1] else "Passed 1 test case with 7 assertions.")


def gxp_cuda_bench(arguments, how):
    row = {"what": "copy of 1 GiB", "seconds": 5e-4, "flops_per_s": 0, "bytes_per_s": 4.3e12, "share_of_ceiling": 1}
    print(json.dumps(row))
    if how == "fails":
        print(json.dumps({"what": "1.5B qkv dW", "error": "cuBLASLt has no algorithm"}))
    print(json.dumps({**row, "what": "the last product"}))
    if how == "lacks":
        print(json.dumps({**row, "what": "a row of no number", "share_of_ceiling": None}))
    sys.exit(5 if how == "fails" else 0)


def nvidia_smi(arguments, how):
    if "-lms" in arguments:
        print("1755, 650.00, 60, 0x0000000000000004\n345, 100.0, 40, 0x0000000000000001", flush=True)
        time.sleep(600)
    print("9.0" if "compute_cap" in arguments[0] else "NVIDIA Stand-in, 1.0, 81559 MiB, 1980 MHz, 700.00 W")


def compute_sanitizer(arguments, how):
    print("========= ERROR SUMMARY: 0 errors")


def python(arguments, how):
    """PyTorch, and the child that loads the libraries."""
    if arguments[0] != "-c":
        print(json.dumps({"tokens_per_s": 2e5, "losses": [10.8, 9.5], "peak_gpu_mib": 10 << 10}))
    elif "ctypes" in arguments[1]:
        found = {name: f"1 (/usr/lib/{file})" for name, (file, *_) in json.loads(arguments[2]).items()}
        print(json.dumps({**found, "cuBLASLt": "absent: no such file"} if how == "lacks" else found))


def main():
    program, arguments = sys.argv[1], sys.argv[2:]
    how, whose, words = (os.environ.get("GXP_STAND_IN", "") + "::").split(":")[:3]
    how = how if whose == program and words in " ".join(arguments).replace("\\", "") and "--list-test-names-only" not in arguments and arguments != ["--version"] else ""
    if how == "warns":
        print("warning: something is older than it could be\n[json] {", file=sys.stderr)
    if how == "hangs":
        print("starting", flush=True)
        os.fork()  # one whose child outlives it
        time.sleep(600)
    if how == "dies":
        print("it is about to die", file=sys.stderr, flush=True)
        os.kill(os.getpid(), signal.SIGSEGV)
    globals()[program.replace("-", "_")](arguments, how)


main()
