#!/bin/sh
# gpu_hint.sh BUILD: where an NVIDIA GPU is visible that the build in this directory cannot use, says how to build for it.
set -eu
grep -q '^GXP_CUDA:[A-Z]*=ON$' "$1/CMakeCache.txt" && exit 0
test -e /dev/nvidia0 || nvidia-smi -L 2>/dev/null | grep -q '^GPU ' || exit 0
echo 'an NVIDIA GPU is here: `PRESET=cuda make build` builds for it'
