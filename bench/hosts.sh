#!/bin/bash
# Runs a command on pretended hosts of this machine (tests/launchers/hosts).
set -euo pipefail

usage() {
  cat <<'TEXT'
bench/hosts.sh [--hosts H] [--ranks N] [--rate RATE] [--count] [--plain] COMMAND...
      Runs COMMAND on every host, with --nnodes H --nproc N --node-rank I --master HOST:PORT behind it, and
      removes the hosts. Prints what the first one prints; the status is that of the first host that failed.
  --hosts H     how many; 2
  --ranks N     ranks of each host; 2
  --rate RATE   a host sends and receives at most so fast, as tc writes it: 1gbit; without it unlimited
  --count       tells at the end, on stderr, what left each host by its cable: "host 0 sent 1234 bytes"
  --plain       COMMAND as it is: HOST_INDEX is 0, 1, ...; the hosts are named host0, host1, ...
The hosts share the CPUs, memory and files. Needs root, and ip, tc and unshare (iproute2, util-linux).

  bench/hosts.sh --rate 1gbit build/cmd/gxp allreduce-test --algorithm hierarchical -b 64M -e 64M
TEXT
}

self=$(realpath "$0") arguments=("$@")
rate=unlimited ranks=2 hosts=2 plain=false count=false
while [[ ${1-} == --* ]]; do
  case $1 in
    --rate | --ranks | --hosts) declare "${1#--}=${2:?"$1 needs a value"}"; shift 2 ;;
    --plain | --count) declare "${1#--}=true"; shift ;;
    --help) usage; exit ;;
    *) echo "hosts: unknown option $1; see --help" >&2; exit 125 ;;
  esac
done
[[ $# -gt 0 ]] || { usage >&2; exit 125; }
# Beside the hosts, HOSTS is the program that reaches them.
[[ -n ${HOSTS-} ]] || exec "${self%/*}/../tests/launchers/hosts" --count "$hosts" --rate "$rate" "$self" "${arguments[@]}"

GXP_JOB_SECRET=${GXP_JOB_SECRET:-$(od -An -tx1 -N32 /dev/urandom | tr -d ' \n')}
export GXP_JOB_SECRET
run_on() {
  local more=()
  $plain || more=(--nnodes "$hosts" --nproc "$ranks" --node-rank "$1" --master host0:29500)
  HOST_INDEX=$1 exec "$HOSTS" on "host$1" "${@:2}" "${more[@]}"
}
runs=()
run_on 0 "$@" & runs+=($!)
for ((host = 1; host < hosts; ++host)); do
  run_on "$host" "$@" >/dev/null & runs+=($!)
done
status=0
for run in "${runs[@]}"; do
  code=0
  wait "$run" || code=$?
  status=$((status ? status : code))
done
for ((host = 0; host < hosts; ++host)); do
  $count || break
  "$HOSTS" on "host$host" awk -v host="$host" '$1 == "eth0:" { print "host", host, "sent", $10, "bytes" }' /proc/net/dev >&2
done
exit "$status"
