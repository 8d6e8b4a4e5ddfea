#!/bin/sh
# gpu_bundle.sh BUILD OUT: what `make gpu-check` needs of a CUDA build, for a machine with a GPU and without a compiler:
# the programs, stripped, and the libraries that they load but the C library's own. CUDA's runtime is inside them.
set -eu
build=$1
out=$2
rm -rf "$out"
for program in cmd/gxp tests/cuda/gxp_cuda_test bench/gxp_cuda_bench; do
  mkdir -p "$out/$(dirname "$program")" "$out/lib"
  strip -o "$out/$program" "$build/$program"
  ldd "$build/$program" | awk '$3 ~ "^/" { print $3 }' | grep -Ev '/(libc|libm|libdl|libpthread|librt|ld-linux[^/]*)\.so' |
    xargs -r cp -L -t "$out/lib"
done
du -sh "$out"
