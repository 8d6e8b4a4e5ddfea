#!/bin/bash
# Two pretended hosts on this machine: network namespaces that a veth cable joins.
set -euo pipefail

usage() {
  cat <<'TEXT'
bench/two_hosts.sh [--rate RATE] [--ranks N] [--plain] COMMAND...
      Runs COMMAND on both hosts, with --nnodes 2 --nproc N --node-rank 0|1 --master HOST:PORT behind it, and
      removes the hosts. Prints what the first one prints; the status is the first one's, or else the second's.
  --rate RATE   both ends of the cable send at most so fast, as tc writes it: 1gbit; without it unlimited
  --ranks N     ranks of each host; 2
  --plain       COMMAND as it is: HOST_INDEX is 0 or 1; HOST0 and HOST1 are the addresses
The hosts share the CPUs, memory and files. Needs root, and ip, tc and unshare (iproute2, util-linux).

  bench/two_hosts.sh --rate 1gbit build/cmd/gxp allreduce-test --algorithm hierarchical -b 64M -e 64M
TEXT
}

die() { echo "two_hosts: $*" >&2; exit 125; }

rate='' ranks=2 plain=false
while [[ ${1-} == --* ]]; do
  case $1 in
    --rate) rate=${2:?"--rate needs a value"}; shift 2 ;;
    --ranks) ranks=${2:?"--ranks needs a value"}; shift 2 ;;
    --plain) plain=true; shift ;;
    --help) usage; exit ;;
    *) die "unknown option $1; see --help" ;;
  esac
done
[[ $# -gt 0 ]] || { usage >&2; exit 125; }
[[ $(id -u) == 0 ]] || die "must run as root: it makes network namespaces"
for tool in ip tc unshare nsenter; do
  command -v "$tool" >/dev/null || die "needs $tool (packages iproute2, util-linux)"
done

# A host is a namespace that lives as long as the process that keeps it; its end of the cable goes with it.
keepers=() runs=()
clean_up() {
  kill "${runs[@]}" "${keepers[@]}" 2>/dev/null || true
  wait 2>/dev/null || true
}
trap clean_up EXIT
trap 'exit 143' TERM HUP
trap 'exit 130' INT

start_host() {
  unshare --net sleep infinity &
  keepers+=($!)
  local own theirs=''
  own=$(readlink /proc/self/ns/net)
  until [[ -n $theirs && $theirs != "$own" ]]; do
    kill -0 $! 2>/dev/null || die "make a network namespace: not allowed here"
    theirs=$(readlink "/proc/$!/ns/net") || true
  done
}
on() { nsenter --target "${keepers[$1]}" --net -- "${@:2}"; }

start_host
start_host
export HOST0=10.78.0.1 HOST1=10.78.0.2
on 0 ip link add veth0 type veth peer name veth0 netns "${keepers[1]}"
for host in 0 1; do
  address=HOST$host
  on $host ip link set lo up
  on $host ip address add "${!address}/24" dev veth0
  on $host ip link set veth0 up
  # The queue holds 20 ms, as a switch's would.
  [[ -z $rate ]] || on $host tc qdisc add dev veth0 root tbf rate "$rate" burst 256kb latency 20ms
done

GXP_JOB_SECRET=${GXP_JOB_SECRET:-$(od -An -tx1 -N32 /dev/urandom | tr -d ' \n')}
export GXP_JOB_SECRET
run_on() {
  local more=()
  $plain || more=(--nnodes 2 --nproc "$ranks" --node-rank "$1" --master "$HOST0:29500")
  HOST_INDEX=$1 exec nsenter --target "${keepers[$1]}" --net -- "${@:2}" "${more[@]}"
}
run_on 0 "$@" & runs+=($!)
run_on 1 "$@" >/dev/null & runs+=($!)
status=0
wait "${runs[0]}" || status=$?
wait "${runs[1]}" || status=$((status ? status : $?))
runs=()
exit "$status"
