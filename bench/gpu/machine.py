"""What a GPU's check finds: the GPU, the driver, and the libraries that gxp's programs load."""
import json
import os
import sys

from gpu.programs import PYTHON, Failed, find_tool

# Of each library: its name, the function that tells its version, and whether that returns it or writes it where it is told.
LIBRARIES = {"cuBLASLt": ("libcublasLt.so.13", "cublasLtGetVersion", "returns"), "cuDNN": ("libcudnn.so.9", "cudnnGetVersion", "returns"),
             "NCCL": ("libnccl.so.2", "ncclGetVersion", "writes"), "driver": ("libcuda.so.1", "cuDriverGetVersion", "writes")}
# Run by a child, whose loader has gxp's folders.
LOAD = """
import ctypes, json, sys
found = {}
for name, (file, function, how) in json.loads(sys.argv[1]).items():
    try:
        call = getattr(ctypes.CDLL(file), function)
        if how == "returns":
            call.restype = ctypes.c_size_t
            version = call()
        else:
            value = ctypes.c_int(0)
            call(ctypes.byref(value))
            version = value.value
        path = next((line.split()[-1] for line in open("/proc/self/maps") if file.rsplit(".so", 1)[0] + ".so" in line), "?")
        found[name] = f"{version} ({path})"
    except (OSError, AttributeError) as error:
        found[name] = f"absent: {error}"
print(json.dumps(found))
"""


def describe_gpu(check):
    """Its name and limits, by nvidia-smi, which is a tool: without it gxp's programs say whether there is a GPU."""
    tool = find_tool("nvidia-smi")
    if tool is None:
        return {"gpu": "nvidia-smi was not found"}
    said = check.run([tool, "--query-gpu=name,driver_version,memory.total,clocks.max.sm,power.limit", "--format=csv,noheader"], 20)
    check.results["compute_capability"] = check.run([tool, "--query-gpu=compute_cap", "--format=csv,noheader"], 20).split()[0]
    return {"gpu": said.strip().replace("\n", "; ")}


def versions(check):
    out = check.run([PYTHON, "-c", LOAD, json.dumps(LIBRARIES)], 60, {"LD_LIBRARY_PATH": check.library_path})
    found = json.loads(out)
    gxp = check.run([check.path("cmd", "gxp"), "--version"], 20).strip().splitlines()[0]
    check.note({"versions": {"gxp": gxp, "python": sys.version.split()[0], "CPUs": os.cpu_count(), **found}})
    if found["cuBLASLt"].startswith("absent"):
        raise Failed(f"no product can be computed: cuBLASLt is {found['cuBLASLt']}", 3)
