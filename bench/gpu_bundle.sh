#!/bin/sh
# gpu_bundle.sh BUILD OUT: one archive in OUT of what `make gpu-check` needs of a CUDA build, for a machine with a GPU and
# without a compiler: the programs, stripped, and the libraries that they load but the C library's own and CUPTI. CUDA's runtime is
# inside them. GCC's libraries, which a machine that runs Python or CUDA has, are apart, for one that has none. Says how much
# travels with the tree that git knows, and fails where that is more than MOST_MIB.
set -eu
build=$1
out=$2
most_mib=${MOST_MIB:-50}
stage=$(mktemp -d)
trap 'rm -rf "$stage"' EXIT
bundle=$stage/gpu-bundle
mkdir -p "$bundle/lib" "$bundle/fallback"
for program in cmd/gxp tests/cuda/gxp_cuda_test bench/gxp_cuda_bench bench/libgxp_kernel_times.so; do
  [ -e "$build/$program" ] || [ "$program" != bench/libgxp_kernel_times.so ] || continue  # no CUPTI where it was built
  mkdir -p "$bundle/$(dirname "$program")"
  strip -o "$bundle/$program" "$build/$program"
  libraries=$(ldd "$build/$program" | awk '$3 ~ "^/" { print $3 }' |
    grep -Ev '/(libc|libm|libdl|libpthread|librt|libcupti|ld-linux[^/]*)\.so')
  for library in $libraries; do
    case $library in
      */libstdc++.so* | */libgcc_s.so*) place=fallback ;;
      *) place=lib ;;
    esac
    [ -e "$bundle/$place/${library##*/}" ] || strip -o "$bundle/$place/${library##*/}" "$library"
  done
done
rm -rf "$out"
mkdir -p "$out"
tar -C "$stage" --sort=name --owner=0 --group=0 -cf - gpu-bundle | xz -9e > "$out/gpu-bundle.tar.xz"
bundle_kib=$(du -sk "$out" | cut -f1)
tree_kib=$(git ls-files -z | du -ck --files0-from=- | tail -n 1 | cut -f1)
travels=$(((bundle_kib + tree_kib) / 1024))
echo "$out/gpu-bundle.tar.xz: $((bundle_kib / 1024)) MiB, with the tree $travels MiB"
[ "$travels" -le "$most_mib" ] || { echo "gpu_bundle.sh: more than $most_mib MiB would travel" >&2; exit 1; }
