#!/usr/bin/env bash
# What verbs reach between two ports against perftest, and how well a calibration predicts them. For a machine with
# RDMA devices, or the one that tests/rdma-vm/run boots:
#   tests/rdma-vm/run --timeout 900 bench/rdma_vm.sh build/release [DEVICE DEVICE [perftest|predicted]]
set -euo pipefail
build=${1:?"the build's folder"}
first=${2:-rxe0} second=${3:-rxe1}
gxp=$build/cmd/gxp
work=$(mktemp -d)
verbs=(--transport verbs --protect none --set "comm.verbs_devices=$first,$second")

median() { sort -n | awk '{ at[NR] = $1 } END { print at[int((NR + 1) / 2)] }'; }

# MB/s of writes of 1 MiB, both directions together: the best of one or both at a time, spinning or sleeping.
write_bandwidth() {
  local how server
  for how in "" -e -b "-b -e"; do
    # shellcheck disable=SC2086  # none, one or two options
    ib_write_bw $how -d "$second" -s 1048576 -n 40 -F -p 18600 >/dev/null 2>&1 &
    server=$!
    sleep 0.5
    # shellcheck disable=SC2086
    ib_write_bw $how -d "$first" -s 1048576 -n 40 -F -p 18600 127.0.0.1 2>/dev/null |
      awk '$1 == 1048576 { print $4 * 1.048576 }' || true
    wait $server || true
  done | sort -n | tail -n 1
}
# The same of an all-reduce on 2 ranks: each sends and receives its bus bandwidth.
all_reduce_bandwidth() { # SIZE
  "$gxp" allreduce-test "${verbs[@]}" --nproc 2 -b "$1" -e "$1" -n 5 -w 1 --format json 2>/dev/null >"$work/reduce"
  python3 -c 'import json, sys; print(2e3 * json.load(open(sys.argv[1]))["results"][0]["in_place"]["busbw"])' "$work/reduce"
}

against_perftest() {
  local turn size
  for turn in 1 2 3; do
    write_bandwidth >>"$work/bw"
    for size in 1M 8M; do all_reduce_bandwidth $size >>"$work/bw-$size"; done
  done
  for size in 1M 8M; do
    awk -v size=$size -v reduce="$(median <"$work/bw-$size")" -v write="$(median <"$work/bw")" 'BEGIN {
      printf "all-reduce of %s: %.1f MB/s both ways, ib_write_bw %.1f, ratio %.2f\n", size, reduce, write, reduce / write }'
  done
}

# Each size that the profile predicts against what it takes.
predicted() { # NPROC
  local nproc=$1 op
  "$gxp" allreduce-test "${verbs[@]}" --nproc "$nproc" --calibrate "$work/profile" >/dev/null
  for op in all_reduce all_gather reduce_scatter broadcast alltoall; do
    local what=(allreduce-test "${verbs[@]}" --nproc "$nproc" --profile "$work/profile" --op $op -b 4K -e 4M -f 8 --format json)
    "$gxp" "${what[@]}" --simulate profile >"$work/simulated" 2>"$work/err" || cat "$work/err"
    "$gxp" "${what[@]}" -n 7 -w 1 -c 0 >"$work/measured" 2>"$work/err" || cat "$work/err"
    python3 - "$work/simulated" "$work/measured" "$op on $nproc ranks" <<'END'
import json, sys
simulated, measured = (json.load(open(file))["results"] for file in sys.argv[1:3])
for a, b in zip(simulated, measured):
    took = b["in_place"]["time_us"]
    print(f"{sys.argv[3]}, {a['size']:>8} B: {took:10.0f} us, simulated {a['time_us']:10.0f}, ratio {a['time_us'] / took:.2f}")
END
  done
}

case ${4:-all} in
  perftest) against_perftest ;;
  predicted) predicted 2; predicted 4 ;;
  *) against_perftest; predicted 2; predicted 4 ;;
esac
