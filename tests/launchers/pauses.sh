#!/bin/bash
# Stops processes of a run (SIGSTOP) for longer than its deadlines and continues them, as schedulers, Ctrl-Z, cgroups and
# snapshots of machines do: while ranks join, step and save, over shm and tcp. A pause of all ranks, or of all of one host for
# less than comm.timeout_s, is no fault; one rank, or one host, that stays behind is named.
#   pauses.sh GXP     one host; as root also two, of namespaces
set -uo pipefail
gxp=$(realpath "$1") here=$(dirname "$(realpath "$0")")
folder=$(mktemp -d) && cd "$folder" || exit 1
trap 'kill -KILL $(jobs -p) 2>/dev/null; rm -rf "$folder"' EXIT
failed=0

head -c 100000 /dev/urandom | base64 >corpus.txt
cat >tiny.toml <<'TEXT'
[model]
hidden = 32
layers = 2
heads = 2
context = 32
[data]
train = ["corpus.txt"]
[train]
steps = 1000000
micro_batch = 2
threads = 1
[comm]
timeout_s = 3
TEXT

# start NAME PHASE TRANSPORT OPTIONS...: a run in the background, until the phase; sets `launcher`.
start() {
  local name=$1 phase=$2 transport=$3 every=0; shift 3
  [[ $phase == saving ]] && every=1
  rm -rf "$name"
  $gxp train tiny.toml "$@" --join-timeout 3 --set comm.transport="$transport" --set checkpoint.dir="$name" \
    --set checkpoint.every=$every --set checkpoint.keep=2 >"$name.out" 2>"$name.err" &
  launcher=$!
  local i
  for ((i = 0; i < 500; i++)); do
    case $phase in
      joining) [[ $(pgrep -c -P $launcher) == "$ranks_here" ]] && break ;;
      stepping) [[ -s $name/metrics.jsonl ]] && break ;;
      saving) compgen -G "$name/step-*" >/dev/null && break ;;
    esac
    sleep 0.02
  done
}

judge() {  # NAME CODE EXPECTED TEXT
  local name=$1 code=$2 expected=$3 text=$4
  if [[ $code == "$expected" ]] && grep -q -- "$text" "$name.err"; then
    echo "ok      $name"
  else
    echo "FAILED  $name: exit code $code, expected $expected and '$text'"; sed 's/^/        /' "$name.err"; failed=1
  fi
}

# all PHASE TRANSPORT: every process is stopped for longer than all deadlines, goes on, and ends as asked.
all() {
  local name=all-$1-$2
  start "$name" "$1" "$2" --nproc 2
  local group; group="$launcher $(pgrep -P $launcher)"
  kill -STOP $group; sleep 5; kill -CONT $group; sleep 1.5
  kill -TERM $launcher; wait $launcher
  local code=$?
  grep -q error "$name.err" && code="$code with an error"
  # A run that is asked to end while its ranks still join has nothing to save.
  judge "$name" "$code" 143 ''
}

# one PHASE TRANSPORT: a rank is stopped and stays so.
one() {
  local name=one-$1-$2
  start "$name" "$1" "$2" --nproc 2
  kill -STOP "$(pgrep -P $launcher | sort -n | sed -n 2p)"
  wait $launcher
  judge "$name" $? 5 'rank 1'
}

# Inside `hosts`: host SECONDS PHASE: all of host 1 is stopped, for so long.
host() {
  local name=host-$1-$2 seconds=$1 phase=$2 other first pid
  export GXP_JOB_SECRET; GXP_JOB_SECRET=$(printf %064d 7)
  "$HOSTS" on host1 $gxp train tiny.toml --nproc 2 --nnodes 2 --node-rank 1 --master host0:29500 --join-timeout 10 \
    --set checkpoint.dir="$name" >/dev/null 2>"$name.other" & other=$!
  "$HOSTS" on host0 $gxp train tiny.toml --nproc 2 --nnodes 2 --node-rank 0 --master host0:29500 --join-timeout 10 \
    --set checkpoint.dir="$name" >/dev/null 2>"$name.err" & first=$!
  for ((i = 0; i < 500; i++)); do [[ -s $name/metrics.jsonl ]] && break; sleep 0.02; done
  pid="$other $(pgrep -P $other)"
  kill -STOP $pid; sleep "$seconds"; kill -CONT $pid 2>/dev/null; sleep 1.5
  kill -TERM $first 2>/dev/null; wait $first
  local code=$?
  kill -KILL $other 2>/dev/null; wait $other 2>/dev/null
  if ((seconds < 3)); then judge "$name" $code 143 ''; else judge "$name" $code 5 'rank [23]'; fi
}

if [[ ${2-} == --hosts ]]; then
  ranks_here=2
  host 1 stepping
  host 6 stepping
  exit $failed
fi
ranks_here=2
for transport in shm tcp; do
  for phase in joining stepping saving; do
    all $phase $transport
    one $phase $transport
  done
done
if [[ $(id -u) == 0 ]]; then "$here/hosts" "$here/pauses.sh" "$gxp" --hosts || failed=1; else echo "skipped: two hosts need root"; fi
exit $failed
