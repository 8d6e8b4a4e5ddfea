#!/usr/bin/env python3
"""split_stores.py CUOBJDUMP FILE...: finds stores of a group of elements that were compiled to one store an element.

Such a store touches a sector of memory once for each element, where one instruction for the group touches it once. In
machine code it shows as stores of one width whose addresses are neighbours: the same register, offsets that differ by the
width. Exit codes: 1 with the kernels' names; 77 where CUOBJDUMP is not there.
"""
import collections
import re
import shutil
import subprocess
import sys

WIDTHS = {"U8": 1, "S8": 1, "U16": 2, "S16": 2, "64": 8, "128": 16}
STORE = re.compile(r"\bSTG(\.\S+)?\s+(?:desc\[\w+\])?\[(?P<base>R(?P<register>\d+)[^\]]*?)(?P<offset>\+-?0x[0-9a-f]+)?\]")
WRITE = re.compile(r"^(?:@!?U?P\w+\s+)?(?P<name>[A-Z][A-Z0-9_.]*)\s+(?:P\w+,\s*)*R(?P<register>\d+)\b")
# Kernels in which a thread has neighbours that it writes one by one: <1, ...> where arrays do not lie in fours, sums up to
# each element, words that lie at odd halves, and the words of a barrier, which one thread writes.
ONE_BY_ONE = re.compile(r"ILi1E|sum_up_counts|encode_blocks|barrier_kernel")


def registers_written(instruction):
    """The address registers that hold something else from here on."""
    match = WRITE.match(instruction)
    if not match or match["name"].startswith(("ST", "RED")):
        return ()
    first = int(match["register"])
    count = 4 if ".128" in match["name"] else 2 if re.search(r"\.64|WIDE", match["name"]) else 1
    return range(first - 1, first + count)  # an address takes two


def split_stores(instructions):
    """How many stores have a neighbour of their width."""
    offsets = collections.defaultdict(set)  # of stores so far, by address and width
    found = 0
    for instruction in instructions:
        store = STORE.search(instruction)
        if store:
            width = next((WIDTHS[part] for part in (store[1] or "").split(".") if part in WIDTHS), 4)
            offset = int((store["offset"] or "0").replace("+", ""), 16)
            seen = offsets[int(store["register"]), store["base"], width]
            found += width < 16 and (offset - width in seen or offset + width in seen)
            seen.add(offset)
            continue
        written = registers_written(instruction)
        for key in [key for key in offsets if key[0] in written]:
            del offsets[key]
    return found


def kernels_of(path, cuobjdump):
    """(architecture, mangled name, instructions) of each."""
    dump = subprocess.run([cuobjdump, "-sass", path], check=True, text=True, stdout=subprocess.PIPE).stdout
    architecture = None
    for part in re.split(r"^\s*(?=code for |Function : )", dump, flags=re.MULTILINE):
        head, *lines = part.splitlines() or [""]
        if head.startswith("code for "):
            architecture = head.split()[-1]
        elif head.startswith("Function : "):
            matches = (re.match(r"\s*/\*[0-9a-f]{4,}\*/\s+(.*?);", line) for line in lines)
            yield architecture, head.split()[-1], [match[1].strip() for match in matches if match]


def readable(names):
    filter_ = shutil.which("c++filt")
    if not filter_ or not names:
        return names
    return subprocess.run([filter_, *names], check=True, text=True, stdout=subprocess.PIPE).stdout.splitlines()


def main():
    cuobjdump, *paths = sys.argv[1:]
    if not shutil.which(cuobjdump):
        print("split_stores: skipped, there is no cuobjdump: NVIDIA's package cuda-cuobjdump has it")
        return 77
    total, stores, found = 0, 0, []
    for path in paths:
        for architecture, name, instructions in kernels_of(path, cuobjdump):
            total += 1
            stores += sum(1 for each in instructions if STORE.search(each))
            count = split_stores(instructions)
            if count > 0 and not ONE_BY_ONE.search(name):
                found.append((count, architecture, name))
    if total == 0 or stores == 0:
        sys.exit(f"split_stores: {total} kernels with {stores} stores in {' '.join(paths)}: nothing was looked at")
    for (count, architecture, _), name in zip(found, readable([name for _, _, name in found])):
        print(f"{architecture}: {count} split stores in {name}")
    print(f"{len(found)} of {total} kernels have split stores")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
