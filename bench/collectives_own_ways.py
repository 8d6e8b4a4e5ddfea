#!/usr/bin/env python3
"""Does gxp choose the fastest of its own ways? Runs a collective by every one of them - in shared memory copied, by the kernel, through
tiles; by messages with each algorithm, with more channels, with other segments - and as gxp chooses, without a profile, with one that
was calibrated just before, and without the kernel's copies. Float sums in place; the programs take turns; every figure is the least of
the rounds' medians of the slowest rank's time.

  bench/collectives_own_ways.py --gxp build/release/cmd/gxp [--ranks 2] [--op all_reduce] [--memory ordinary] [--rounds 3]

Prints a table in Markdown: each choice beside the best way that it had, and its time as a multiple of that one's. Exits with 1 if a
choice took more than --tolerance longer than the best (0.1: a tenth), after those rows were measured once more.
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile

MESSAGES = ["halving-doubling", "ring", "recursive-doubling", "one-shot", "double-tree", "hierarchical", "binomial", "bruck"]
SHARED = ["copied", "kernel", "tiles"]
PLACED = "placed"


class Way:
    """Options of the command that make it go one way; `accept` says whether a row of its result did."""

    def __init__(self, name, options, accept=lambda row: True):
        self.name, self.options, self.accept = name, options, accept
        self.us = {}
        self.taken = {}


def way_in(reason):
    """'... ; by tiles 7.9 us, kernel 114 us' -> 'tiles'"""
    return reason.split("; by ")[1].split(",")[0].split(" ")[0] if "; by " in reason else ""


def name_of(row):
    return way_in(row["reason"]) or row["algorithm"]


def by_shared(name):
    return lambda row: way_in(row["reason"]) == name


def by_messages(name):
    return lambda row: row["algorithm"] == name


def own_ways(options):
    ways = []
    if options.memory == "communicator":
        ways.append(Way(PLACED, ["--algorithm", "tiles"], by_shared(PLACED)))
        ways.append(Way("copied", ["--algorithm", "copied"], by_shared("copied")))
    else:
        ways += [Way(name, ["--algorithm", name], by_shared(name)) for name in SHARED]
    for name in MESSAGES:
        ways.append(Way(name, ["--algorithm", name], by_messages(name)))
    for channels in (2, 4):
        ways.append(Way(f"ring, {channels} channels", ["--algorithm", "ring", "--channels", str(channels)], by_messages("ring")))
    for segment in ("64K", "256K"):
        ways.append(Way(f"double-tree, {segment}", ["--algorithm", "double-tree", "--segment-bytes", segment],
                        by_messages("double-tree")))
    return ways


def choices(options, profile):
    builtin = ["--profile", "builtin"]
    found = [Way("chosen", builtin), Way("calibrated", ["--profile", profile])]
    if options.memory == "ordinary":
        found.append(Way("without the kernel", builtin + ["--set", "comm.kernel_copies=false"]))
    return found


def run(options, way, sizes, iterations):
    command = [options.gxp, "allreduce-test", "--nproc", str(options.ranks), "--op", options.op, "-c", "0", "--memory", options.memory,
               "--format", "json", "-n", str(iterations), "-b", str(sizes[0]), "-e", str(sizes[-1]), "-f", "4"]
    command += way.options + options.gxp_options
    if "--profile" not in command:
        command += ["--profile", "builtin"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=options.timeout, check=False)
    except subprocess.TimeoutExpired:
        return
    if done.returncode != 0:
        if "there is none of that name" not in done.stderr:
            print(f"{' '.join(command)}: {done.stderr.strip()[-300:]}", file=sys.stderr)
        return
    for row in json.loads(done.stdout)["results"]:
        if not way.accept(row):
            continue
        size = row["size"]
        us = row["in_place"]["p50_us"]
        if size not in way.us or us < way.us[size]:
            way.us[size] = us
            way.taken[size] = name_of(row)


def measure(options, ways, sizes):
    """Small calls often, large ones a few times. Sizes of a run share a buffer, which has huge pages above 1 MiB."""
    spans = [([s for s in sizes if s <= 1 << 20], 200), ([s for s in sizes if s > 1 << 20], 15)]
    for _ in range(options.rounds):
        for span, iterations in spans:
            for way in ways if span else []:
                run(options, way, span, iterations)


def best_of(ways, size, without=()):
    known = [(way.us[size], way.name) for way in ways if size in way.us and way.name not in without]
    return min(known) if known else None


def ratio_of(choice, ways, size):
    without = ["kernel"] if choice.name == "without the kernel" else []
    best = best_of(ways + [choice], size, without)
    return choice.us[size] / best[0] if size in choice.us and best else None


def size_text(size):
    for unit, bytes_ in (("MiB", 1 << 20), ("KiB", 1 << 10)):
        if size % bytes_ == 0:
            return f"{size // bytes_} {unit}"
    return f"{size} B"


def time_text(us):
    return f"{us:.2f}" if us < 10 else f"{us:.1f}" if us < 100 else f"{us:,.0f}"


def print_table(options, ways, chosen, sizes):
    print(f"{options.op}, {options.ranks} ranks, {options.memory} memory, us, least of {options.rounds} rounds' medians\n")
    head = ["best way"] + [f"{choice.name} | ratio" for choice in chosen]
    head += [way.name for way in ways if way.us]
    print("| size | " + " | ".join(head) + " |\n" + "|---" * (1 + sum(1 + h.count("|") for h in head)) + "|")
    for size in sizes:
        best = best_of(ways, size)
        cells = [f"{best[1]} {time_text(best[0])}" if best else ""]
        for choice in chosen:
            ratio = ratio_of(choice, ways, size)
            cells += [f"{choice.taken[size]} {time_text(choice.us[size])}", f"**{ratio:.2f}**"] if ratio else ["", ""]
        cells += [time_text(way.us[size]) if size in way.us else "" for way in ways if way.us]
        print(f"| {size_text(size)} | " + " | ".join(cells) + " |")


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--gxp", required=True)
    p.add_argument("--ranks", type=int, default=2)
    p.add_argument("--op", default="all_reduce")
    p.add_argument("--memory", default="ordinary", choices=["ordinary", "communicator"])
    p.add_argument("--rounds", type=int, default=3)
    p.add_argument("--from", dest="smallest", type=int, default=64)
    p.add_argument("--to", dest="largest", type=int, default=64 << 20)
    p.add_argument("--tolerance", type=float, default=0.1)
    p.add_argument("--timeout", type=float, default=60, help="seconds of one run; slower ways are left out")
    p.add_argument("--gxp-options", default="")
    options = p.parse_args()
    options.gxp_options = options.gxp_options.split()
    sizes = [options.smallest]
    while sizes[-1] * 4 <= options.largest:
        sizes.append(sizes[-1] * 4)

    with tempfile.TemporaryDirectory() as directory:
        profile = os.path.join(directory, "profile.toml")
        subprocess.run([options.gxp, "allreduce-test", "--calibrate", profile, "--nproc", str(options.ranks)], check=True,
                       stdout=subprocess.DEVNULL)
        ways, chosen = own_ways(options), choices(options, profile)
        measure(options, ways + chosen, sizes)

        def misses():
            return [(choice, size) for choice in chosen for size in sizes
                    if (ratio_of(choice, ways, size) or 0) > 1 + options.tolerance]

        again = sorted({size for _, size in misses()})
        for size in again:
            measure(options, [way for way in ways + chosen if size in way.us], [size])
    print_table(options, ways, chosen, sizes)
    missed = misses()
    for choice, size in missed:
        print(f"{choice.name}, {size_text(size)}: {ratio_of(choice, ways, size):.2f} of the best", file=sys.stderr)
    sys.exit(1 if missed else 0)


if __name__ == "__main__":
    main()
