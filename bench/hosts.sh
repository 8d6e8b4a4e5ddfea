#!/bin/bash
# Pretended hosts on this machine: network namespaces, each with a cable to one switch.
set -euo pipefail

usage() {
  cat <<'TEXT'
bench/hosts.sh [--hosts H] [--ranks N] [--rate RATE] [--count] [--plain] COMMAND...
      Runs COMMAND on every host, with --nnodes H --nproc N --node-rank I --master HOST:PORT behind it, and
      removes the hosts. Prints what the first one prints; the status is that of the first host that failed.
  --hosts H     how many; 2
  --ranks N     ranks of each host; 2
  --rate RATE   a host sends at most so fast, as tc writes it: 1gbit; without it unlimited
  --count       tells at the end, on stderr, what left each host by its cable: "host 0 sent 1234 bytes"
  --plain       COMMAND as it is: HOST_INDEX is 0, 1, ...; HOST0, HOST1, ... are the addresses
The hosts share the CPUs, memory and files. Needs root, and ip, tc and unshare (iproute2, util-linux).

  bench/hosts.sh --rate 1gbit build/cmd/gxp allreduce-test --algorithm hierarchical -b 64M -e 64M
TEXT
}

die() { echo "hosts: $*" >&2; exit 125; }

rate='' ranks=2 hosts=2 plain=false count=false
while [[ ${1-} == --* ]]; do
  case $1 in
    --rate) rate=${2:?"--rate needs a value"}; shift 2 ;;
    --ranks) ranks=${2:?"--ranks needs a value"}; shift 2 ;;
    --hosts) hosts=${2:?"--hosts needs a value"}; shift 2 ;;
    --plain) plain=true; shift ;;
    --count) count=true; shift ;;
    --help) usage; exit ;;
    *) die "unknown option $1; see --help" ;;
  esac
done
[[ $# -gt 0 ]] || { usage >&2; exit 125; }
[[ $hosts =~ ^[1-9][0-9]?$ ]] || die "--hosts $hosts: must be 1 to 99"
[[ $(id -u) == 0 ]] || die "must run as root: it makes network namespaces"
for tool in ip tc unshare nsenter; do
  command -v "$tool" >/dev/null || die "needs $tool (packages iproute2, util-linux)"
done

# A host, or the switch, is a namespace that lives as long as the process that keeps it; so do its cables.
keepers=() runs=()
clean_up() {
  kill "${runs[@]}" "${keepers[@]}" 2>/dev/null || true
  wait 2>/dev/null || true
}
trap clean_up EXIT
trap 'exit 143' TERM HUP
trap 'exit 130' INT

start_namespace() {
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

for ((host = 0; host <= hosts; ++host)); do start_namespace; done
switch=$hosts
on "$switch" ip link add switch type bridge
on "$switch" ip link set switch up
for ((host = 0; host < hosts; ++host)); do
  export "HOST$host=10.78.0.$((host + 1))"
  on $host ip link add veth0 type veth peer name "host$host" netns "${keepers[$switch]}"
  on "$switch" ip link set "host$host" master switch up
  on $host ip link set lo up
  on $host ip address add "10.78.0.$((host + 1))/24" dev veth0
  on $host ip link set veth0 up
  # The queue holds 20 ms, as a switch's would.
  [[ -z $rate ]] || on $host tc qdisc add dev veth0 root tbf rate "$rate" burst 256kb latency 20ms
done

GXP_JOB_SECRET=${GXP_JOB_SECRET:-$(od -An -tx1 -N32 /dev/urandom | tr -d ' \n')}
export GXP_JOB_SECRET
run_on() {
  local more=()
  $plain || more=(--nnodes "$hosts" --nproc "$ranks" --node-rank "$1" --master "$HOST0:29500")
  HOST_INDEX=$1 exec nsenter --target "${keepers[$1]}" --net -- "${@:2}" "${more[@]}"
}
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
runs=()
for ((host = 0; host < hosts; ++host)); do
  $count || break
  on $host awk -v host="$host" '$1 == "veth0:" { print "host", host, "sent", $10, "bytes" }' /proc/net/dev >&2
done
exit "$status"
