"""Stands in for a program that gpu_check.py runs: stand_in.py PROGRAM [argument...]. Writes what PROGRAM writes, at once.
GXP_STAND_IN=HOW:PROGRAM makes that one warn (on stderr), hang, die, or write results that lack what is read of them."""
import json
import os
import signal
import sys
import time

TESTS = [f"a test, number {i}, of [these]" for i in range(20)]


def value_after(arguments, option):
    return arguments[arguments.index(option) + 1]


def settings(arguments):
    return dict(arguments[i + 1].split("=", 1) for i, word in enumerate(arguments) if word == "--set")


def gxp(arguments, lacks):
    if arguments[0] == "--version":
        print("gxp 0.0 (stand-in)")
    elif arguments[0] == "allreduce-test":
        half = {"time_us": 500.0, "busbw": 120.0, "copy_share": 0.75}
        print(json.dumps({"collectives_on": "pinned host memory: as asked" if lacks else "the GPUs' memory", "copy_gb_per_s": 4000.0,
                          "results": [{"size": 64 << 20, "out_of_place": half, "in_place": half}]}))
    elif arguments[0] == "memcalc":
        print(json.dumps({"results": [{} if lacks else {"peak_bytes": 10 << 30}]}))
    else:
        run = open(arguments[1], encoding="utf-8").read()
        steps = int(run.split("\nsteps = ")[1].split("\n")[0])
        slow = "--nproc" in arguments
        with open(value_after(arguments, "--metrics"), "w", encoding="utf-8") as file:
            for step in range(steps):
                line = {"step": step, "loss": 10.5, "tokens_per_s": 2e5 if slow else 4e5, "mfu": 0.4, "peak_bytes": 10 << 30,
                        "driver_bytes": (10 << 30) + (200 << 20)}
                if lacks:
                    del line["mfu"]
                file.write(json.dumps(line) + "\n")


def gxp_cuda_test(arguments, lacks):
    if "--list-test-names-only" in arguments:
        print("" if lacks else "\n".join(TESTS))
        sys.exit(0 if lacks else len(TESTS))
    for i, name in enumerate(open(value_after(arguments, "--input-file"), encoding="utf-8") if "--input-file" in arguments else []):
        print(f"{0.1 * i:.3f} s: {name.strip()}")
    print("All tests passed (7 assertions in 7 test cases)")


def gxp_cuda_bench(arguments, lacks):
    row = {"what": "copy of 1 GiB", "seconds": 5e-4, "flops_per_s": 0, "bytes_per_s": 4.3e12, "share_of_ceiling": 1}
    if lacks:
        del row["seconds"]
    print(json.dumps([row]))


def nvidia_smi(arguments, lacks):
    print("9.0" if "compute_cap" in arguments[0] else "NVIDIA Stand-in, 1.0, 143771 MiB, 1980 MHz, 700.00 W")


def compute_sanitizer(arguments, lacks):
    print("========= ERROR SUMMARY: 0 errors")


def main():
    program, arguments = sys.argv[1], sys.argv[2:]
    how, _, whose = os.environ.get("GXP_STAND_IN", "").partition(":")
    how = how if whose == program and arguments != ["--version"] else ""
    if how == "warns":
        print("warning: something is older than it could be\n[json] {", file=sys.stderr)
    if how == "hangs":
        print("starting", flush=True)
        os.fork()  # one whose child outlives it
        time.sleep(600)
    if how == "dies":
        print("it is about to die", file=sys.stderr, flush=True)
        os.kill(os.getpid(), signal.SIGSEGV)
    globals()[program.replace("-", "_")](arguments, how == "lacks")


main()
