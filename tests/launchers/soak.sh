#!/bin/bash
# A run of four ranks on two hosts meets random faults for a time. In the first half those that it outlasts: paused ranks and
# hosts, links that are cut, lossy or slow for a while. Then also killed ranks and a killed launcher, which is started again. It
# must go on after each. At the end, after a stop signal, its weights and all of its losses are those of an undisturbed run,
# no process has come to hold more memory, descriptors or threads, and nothing is left in memory files or below /tmp.
#   soak.sh GXP [MINUTES [SEED]]   120 minutes unless told; 77 where two hosts cannot be made
set -Eeuo pipefail
trap 'echo "FAILED in line $LINENO"' ERR
here=$(dirname "$(realpath "$0")")
if [[ ${1-} != inside ]]; then
  "$here/hosts" true 2>/dev/null || { echo "skipped: two hosts need root, ip, tc, nft"; exit 77; }
  scratch=$(mktemp -d)
  trap 'rm -rf "$scratch"' EXIT
  gxp=$(realpath "$1")
  cd "$scratch"
  mkdir tmp
  TMPDIR=$scratch/tmp "$here/hosts" --rate 20mbit "$here/$(basename "$0")" inside "$gxp" "${@:2}"
  exit
fi

gxp=$2 minutes=${3-120} RANDOM=${4-1}
GXP_JOB_SECRET=$(printf 'ab%.0s' {1..32})
export GXP_JOB_SECRET
awk 'BEGIN { srand(1); for (i = 0; i < 4000; i++) print "a line of text, number " int(rand() * 100000) }' >corpus.txt
cat >run.toml <<'TEXT'
[model]
family = "gpt2"
layers = 2
heads = 4
hidden = 32
context = 64
vocab_size = 256
[data]
train = ["corpus.txt"]
tokenizer = "byte"
sequence = 32
[train]
steps = 10000000
micro_batch = 1
threads = 1
log_every = 100000
[checkpoint]
dir = "run"
every = 1000
keep = 2
replica = "neighbour"
replica_every = 50
TEXT

declare -a launchers
start() {
  "$HOSTS" on "host$1" "$gxp" train run.toml --nproc 2 --nnodes 2 --node-rank "$1" --master host0:29655 --max-restarts 100000 \
    --join-timeout 60 >>out"$1" 2>>err"$1" &
  launchers[$1]=$!
}
fail() { echo "FAILED after $SECONDS s: $*"; tail -n 15 err0 err1; exit 1; }
steps() { wc -l <run/metrics.jsonl; }
last_step() { tail -n 1 run/metrics.jsonl | grep -o '"step":[0-9]*' | cut -d: -f2; }
# goes_on WHAT: makes a step after the fault WHAT, within two minutes.
goes_on() {
  local tries=1200 size
  size=$(stat -c %y run/metrics.jsonl)
  until [[ $(stat -c %y run/metrics.jsonl) != "$size" ]]; do
    ((--tries > 0)) || fail "no step after: $1"
    sleep 0.1
  done
}
# The NUMBER-th rank of HOST, which may be about to start.
rank_of() {  # HOST NUMBER
  local tries=600 rank
  until rank=$(pgrep -P "${launchers[$1]}" | sed -n "$2p") && [[ -n $rank ]]; do ((--tries > 0)) || return 1; sleep 0.1; done
  echo "$rank"
}
# A process may have ended by itself.
signal() { kill "-$1" "${@:2}" 2>/dev/null || true; }

count() { echo $#; }
# Of each launcher and rank: process, resident KiB, descriptors, threads, second.
sample() {
  local host process
  for host in 0 1; do
    for process in ${launchers[$host]} $(pgrep -P "${launchers[$host]}"); do
      echo "$process $(awk '/^VmRSS/ { print $2 }' "/proc/$process/status") $(count "/proc/$process/fd/"*)" \
        "$(count "/proc/$process/task/"*) $SECONDS"
    done 2>/dev/null
  done >>samples || true
}

# A time below a second or two: nothing that comm.timeout_s would end.
while_short() { sleep "$((RANDOM % 2)).$((RANDOM % 10))"; }
fault() {
  local host=$((RANDOM % 2)) rank=$((RANDOM % 2 + 1)) process processes
  case $1 in
    paused-rank) process=$(rank_of $host $rank); signal STOP "$process"; while_short; signal CONT "$process" ;;
    paused-host)
      mapfile -t processes < <(pgrep -P "${launchers[$host]}" || true)
      processes+=("${launchers[$host]}")
      signal STOP "${processes[@]}"; while_short; signal CONT "${processes[@]}" ;;
    cut) "$HOSTS" cut "host$host"; while_short; "$HOSTS" heal "host$host" ;;
    lossy) "$HOSTS" lose host$host $((RANDOM % 60 + 5)); while_short; "$HOSTS" heal host$host ;;
    black-hole) "$HOSTS" lose host$host 100 from; while_short; "$HOSTS" heal host$host ;;
    slow) "$HOSTS" rate host$host 1mbit; while_short; "$HOSTS" rate host$host 20mbit ;;
    killed-rank) signal KILL "$(rank_of $host $rank)" ;;
    killed-launcher)
      kill -KILL "${launchers[1]}"
      wait "${launchers[1]}" 2>/dev/null || true
      start 1 ;;
  esac
}

start 0
start 1
tries=600
until [[ -s run/metrics.jsonl ]]; do ((--tries > 0)) || fail "no step"; sleep 0.1; done
sleep 20
sample
faults=0
outlasted=(paused-rank paused-host cut lossy black-hole slow)
fatal=(killed-rank killed-launcher)
while ((SECONDS < minutes * 60)); do
  all=("${outlasted[@]}")
  ((SECONDS < minutes * 30)) || all+=("${fatal[@]}")
  kind=${all[RANDOM % ${#all[@]}]}
  fault "$kind"
  goes_on "$kind"
  faults=$((faults + 1))
  sleep $((RANDOM % 10))
  sample
  ((faults % 50)) || echo "$SECONDS s, $faults faults, $(grep -c 'warn restart ' err0 || true) restarts, step $(last_step)"
done

# A stop signal: a checkpoint of the last step.
kill -TERM "${launchers[@]}"
for host in 0 1; do
  status=0; wait "${launchers[$host]}" || status=$?
  ((status == 143)) || fail "host $host ended with $status"
done
step=$(last_step)
echo "$faults faults, $(grep -c 'warn restart ' err0) restarts, $step steps in $SECONDS s"
for host in 0 1; do
  left=$("$HOSTS" on host$host sh -c 'ls /dev/shm')
  [[ -z $left ]] || fail "left in memory of host$host: $left"
done
[[ -z $(ls tmp) ]] || fail "left below TMPDIR: $(ls tmp)"

# Of processes that lived for ten minutes or a quarter of the time: in the end at most 4 MiB more than in the first minute. A
# replica that is under way has a thread and some descriptors, so the least of the last minutes counts.
awk -v least=$((minutes * 15 < 600 ? minutes * 15 : 600)) '
  function low(a, b) { return a == "" || b < a ? b : a }
  function high(a, b) { return a == "" || b > a ? b : a }
  { if (!($1 in first)) first[$1] = $5; last[$1] = $5; rows[NR] = $0 }
  END {
    for (i = 1; i <= NR; i++) {
      split(rows[i], at)
      process = at[1]
      for (k = 2; k <= 4; k++) {
        if (at[5] <= first[process] + 60) then[process, k] = high(then[process, k], at[k])
        if (at[5] >= last[process] - 120) now[process, k] = low(now[process, k], at[k])
      }
    }
    for (process in last) {
      if (last[process] - first[process] < least) continue
      printf "process %s, %d s: %d to %d KiB, %d to %d descriptors, %d to %d threads\n", process, last[process] - first[process],
        then[process, 2], now[process, 2], then[process, 3], now[process, 3], then[process, 4], now[process, 4]
      seen++
      if (now[process, 2] > then[process, 2] + 4096 || now[process, 3] > then[process, 3] || now[process, 4] > then[process, 4]) bad++
    }
    exit bad > 0 || seen < 2
  }' samples || fail "a process holds more than at its start, or too few lived for long"

# losses FILE: of each step to the last one.
losses() { awk -v last="$step" 'match($0, /"step":[0-9]+/) && substr($0, RSTART + 7, RLENGTH - 7) + 0 <= last' "$1" |
  grep -o '"step":[0-9]*\|"loss":[^,}]*'; }
"$gxp" convert-ckpt run soaked.safetensors --to safetensors >/dev/null 2>&1 || fail "the last checkpoint does not load"
losses run/metrics.jsonl >soaked.losses
rm -rf run
"$HOSTS" on host0 "$gxp" train run.toml --nproc 4 --set "checkpoint.every=$step" --set checkpoint.replica=none >/dev/null 2>&1 &
whole=$!
name=run/step-$(printf %08d "$step")
until [[ -d $name ]]; do
  kill -0 $whole 2>/dev/null || fail "the undisturbed run ended"
  sleep 1
done
"$gxp" convert-ckpt "$name" whole.safetensors --to safetensors >/dev/null 2>&1 || fail "the undisturbed checkpoint does not load"
kill -KILL $whole
losses run/metrics.jsonl >whole.losses
cmp soaked.losses whole.losses || fail "other losses"
cmp soaked.safetensors whole.safetensors || fail "other weights"
echo "all losses and weights as undisturbed"
