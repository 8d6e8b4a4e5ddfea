# Makes protocol-N.pickle with CPython (3.11): one value of each kind, in every binary protocol.
import collections
import pathlib
import pickle

shared = [1, 2]
values = {
    "none": None,
    "flags": (True, False),
    "ints": [0, 255, 65535, -1, 2**31, -(2**40)],
    "big": 2**70,
    "f": -0.5,
    "text": "\u00e9\n",
    "bytes": b"\x01\xff",
    "set": {7},
    "frozen": frozenset([8]),
    "pair": (shared, shared),
    "od": collections.OrderedDict(a=1),
    "count": collections.Counter("aab"),
    "default": collections.defaultdict(list, k=[]),
    "path": pathlib.PurePosixPath("x"),
    "empty": ((), [], {}),
    "long": "y" * 300,
    "array": bytearray(b"abc"),
}
for protocol in (2, 3, 4, 5):
    with open(f"protocol-{protocol}.pickle", "wb") as file:
        pickle.dump(values, file, protocol)
