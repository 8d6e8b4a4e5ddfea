#!/bin/bash
# A job of two hosts with two ranks each loses a host, goes on, takes the host back, and ends with the weights of a run that has
# lost nothing; under each launcher that is installed.
#   killed_host.sh GXP [CASE...]   77 if no case can be tried
#   gxp, k8s, pytorchjob, ssh, torchrun, slurm   the job goes on with the other host
#   gxp-all     all hosts are needed: it loses a rank, then each host's launcher, which is started again
#   slurm-first the same, but it loses the first host, which runs the batch script: Slurm starts the job again
#   slurm-all   all hosts are needed: Slurm starts the job again once the lost host is there
#   slurm-boot  likewise, and the host is there again before Slurm has noticed
#   openmpi, mpich   mpirun starts nothing again: its ranks end, and --resume goes on
set -euo pipefail
here=$(dirname "$(realpath "$0")")

# What a case needs, and what starts its hosts.
needs() {
  case $1 in
    torchrun) echo "${TORCHRUN:-torchrun} hosts" ;;
    ssh) echo "sshd ssh" ;;
    openmpi | mpich) echo "mpirun.$1 ssh" ;;
    slurm-first) echo "slurmctld slurm --count 3" ;;
    slurm*) echo "slurmctld slurm" ;;
    *) echo "sh hosts" ;;
  esac
}

prepare() {
  for _ in {1..400}; do echo "a line of text, number $RANDOM"; done >corpus.txt
  cat >run.toml <<'RUN'
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
sequence = 64
[train]
steps = 200
micro_batch = 1
global_batch = 16
threads = 1
deterministic = "any-world-size"
[checkpoint]
dir = "run"
every = 20
[comm]
timeout_s = 3
RUN
  # About 20 s on the two ranks of one host, so that it is not over before the other is back.
  local seconds
  seconds=$("$gxp" train run.toml --nproc 2 2>/dev/null | sed -n 's/^seconds of all steps: //p')
  sed -i "s/^steps = .*/steps = $(awk "BEGIN { print int(200 * 20 / $seconds) }")/" run.toml
  "$gxp" train run.toml --nproc 2 --overwrite >/dev/null 2>&1
  "$gxp" convert-ckpt run whole.safetensors --to safetensors >/dev/null 2>&1
  rm -r run
}

fail() { echo "FAILED: $case: $*"; grep -v '\] step\|memory per rank' log | tail -n 25; exit 1; }
await() {  # SECONDS WHAT COMMAND...
  local end=$((SECONDS + $1))
  until "${@:3}"; do ((SECONDS < end)) || fail "$2: not within $1 s"; sleep 0.1; done
}
# Ranks that have started after `attempts` earlier attempts have made a step; they are RANKS.
made_step() { awk -v old="$attempts" -v ranks="$1" 'match($0, /[0-9]+ ranks, identity/) { ++n; all = int(substr($0, RSTART)) } / step [0-9]+\// { made = n }
  END { exit !(made > old && all == ranks && made == n) }' log; }
works_on() {  # RANKS SECONDS AFTER
  local began=$EPOCHREALTIME
  await "$2" "a step on $1 ranks after $3" made_step "$1"
  attempts=$(grep -c ' ranks, identity' log)
  awk -v what="$case: a step on $1 ranks after $3:" "BEGIN { printf \"%s %.1f s\\n\", what, $EPOCHREALTIME - $began }"
}
has_same_weights() {
  [[ $(wc -l <run/metrics.jsonl) == "$(sed -n 's/^steps = //p' run.toml)" ]] || fail "$(wc -l <run/metrics.jsonl) steps"
  "$gxp" convert-ckpt run "$case.safetensors" --to safetensors >/dev/null 2>&1
  cmp "$case.safetensors" whole.safetensors || fail "other weights"
}
reap() { wait "$1" 2>/dev/null || true; }
ends_well() {  # PID...
  for pid in "$@"; do wait "$pid" || fail "exit code $?"; done
  has_same_weights
}

# COMMAND is what `start HOST` starts. The one that is lost is host 1.
loses_host() {
  start 0; start 1
  works_on 4 60 "the start"
  { "$HOSTS" crash host1 && reap "${pids[1]}"; } 2>/dev/null
  works_on 2 "$1" "host 1 has crashed"
  "$HOSTS" boot host1
  start 1
  works_on 4 "$2" "it is there again"
  ends_well "${pids[@]}"
}
on() { "$HOSTS" on "host$1" "${@:2}" >>log 2>&1 & pids[$1]=$!; }
elastic=(--nproc 2 --nnodes 1:2 --max-restarts 5 --join-timeout 5)

case_gxp() {
  start() { on "$1" "$gxp" train run.toml "${elastic[@]}" --node-rank "$1" --master host0:29655; }
  loses_host 20 20
}
case_k8s() {
  start() { on "$1" env JOB_COMPLETION_INDEX="$1" "$gxp" train run.toml "${elastic[@]}" --master host0:29511; }
  loses_host 20 20
}
case_pytorchjob() {
  start() { on "$1" env PET_NODE_RANK="$1" PET_NNODES=2 MASTER_ADDR=host0 MASTER_PORT=23456 "$gxp" train run.toml "${elastic[@]}"; }
  loses_host 20 20
}
# Its hosts notice a lost one after 15 s. With the shared store, a host that comes later waits for an address in vain (2.15).
case_torchrun() {
  start() {
    on "$1" env OMP_NUM_THREADS=1 TORCH_DISABLE_SHARE_RDZV_TCP_STORE=1 "${TORCHRUN:-torchrun}" --nnodes 1:2 --nproc-per-node 2 --max-restarts 5 --rdzv-backend c10d \
      --rdzv-endpoint host0:29501 --rdzv-id killed --rdzv-conf last_call_timeout=2 --no-python \
      "$gxp" train run.toml --max-restarts 5
  }
  loses_host 60 60
}
case_gxp-all() {
  start() {
    on "$1" "$gxp" train run.toml --nproc 2 --nnodes 2 --node-rank "$1" --master host0:29655 --max-restarts 5 --join-timeout 30
  }
  start 0; start 1
  works_on 4 60 "the start"
  kill -SEGV "$(pgrep -P "${pids[1]}" | tail -n 1)"
  works_on 4 20 "a crash of rank 3"
  for host in 1 0; do
    kill -KILL "${pids[$host]}"
    reap "${pids[$host]}"
    start $host
    works_on 4 20 "host $host's launcher was killed and started again"
  done
  ends_well "${pids[@]}"
}
case_ssh() {
  "$gxp" train run.toml "${elastic[@]}" --print-launch ssh >script
  bash script host0 host1 >>log 2>&1 &
  works_on 4 60 "the start"
  "$HOSTS" crash host1
  works_on 2 20 "host 1 has crashed"
  "$here/ssh" --boot host1
  works_on 4 60 "it is there again"
  ends_well $!
}

submit() {  # OPTION...
  "$gxp" train run.toml --nproc 2 --max-restarts 5 --join-timeout 5 "$@" --print-launch slurm >script
  sbatch --output log --nodelist "${nodes:-host[0-1]}" script >/dev/null
  works_on 4 60 "the start"
  "$HOSTS" crash host1
}
boot() {
  "$HOSTS" boot host1
  "$HOSTS" on host1 slurmd
}
state() { scontrol show job 1 | sed -n 's/ *JobState=\([A-Z]*\).*/\1/p'; }
is() { [[ $(state) == "$1" ]]; }
completes() { await 120 "the job's end" is COMPLETED; has_same_weights; }
case_slurm() {
  submit --nnodes 1:2
  works_on 2 20 "host 1 has crashed"
  # As SlurmdTimeout would.
  scontrol update nodename=host1 state=down reason=lost
  boot
  sleep 2
  is RUNNING || fail "it is $(state)"
  scontrol requeue 1
  works_on 4 60 "it is there again, and scontrol requeue"
  completes
}
# Slurm's own daemon is on host 0.
case_slurm-first() {
  local nodes='host[1-2]'
  submit --nnodes 1:2
  scontrol update nodename=host1 state=down reason=lost
  await 60 "back in the queue" is PENDING
  boot
  works_on 4 60 "the first host is there again"
  completes
}
case_slurm-all() {
  submit --nnodes 2
  scontrol update nodename=host1 state=down reason=lost
  await 30 "back in the queue" is PENDING
  boot
  works_on 4 60 "it is there again"
  completes
}
case_slurm-boot() {
  submit --nnodes 2
  boot
  works_on 4 90 "host 1 has crashed and started again"
  completes
}

mpi() {  # COMMAND...
  unset GXP_JOB_SECRET  # rank 0 makes one
  "$@" "$gxp" train run.toml >>log 2>&1 &
  works_on 4 60 "the start"
  await 20 "a checkpoint" test -e run/step-00000020
  "$HOSTS" crash host1
  await 20 "the ranks' end" grep -q 'gxp: error: rank [23]: it does not respond' log
  await 5 "the ranks' end" no_rank
  kill -KILL $! 2>/dev/null || true  # it may wait for the host
  reap $!
  "$here/ssh" --boot host1
  "$@" "$gxp" train run.toml --resume >>log 2>&1 &
  works_on 4 60 "it is there again, and --resume"
  ends_well $!
}
no_rank() { ! pgrep -f "^$gxp train" >/dev/null; }
case_openmpi() {
  export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
  mpi mpirun.openmpi --hostfile "$HOSTFILE" -n 4 --map-by ppr:2:node --bind-to none
}
case_mpich() { mpi mpirun.mpich -f "$MACHINEFILE" -n 4 -ppn 2; }

if [[ ${1-} == inside ]]; then
  case=$2 gxp=$3 attempts=0
  declare -a pids
  touch log
  "case_$case"
  exit
fi

gxp=$(realpath "$1"); shift
cases=("$@")
[[ $# != 0 ]] || cases=(gxp gxp-all k8s pytorchjob ssh torchrun slurm slurm-first slurm-all slurm-boot openmpi mpich)
"$here/hosts" true 2>/dev/null || { echo "skipped: two hosts need root, ip, tc, nft"; exit 77; }
GXP_JOB_SECRET=$(printf 'ab%.0s' {1..32})
export GXP_JOB_SECRET
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cd "$scratch"
prepare
tried=0 failed=0
for case in "${cases[@]}"; do
  read -ra world <<<"$(needs "$case")"
  command -v "${world[0]}" >/dev/null || { echo "$case: skipped: no ${world[0]}"; continue; }
  tried=$((tried + 1))
  mkdir "$case"
  cp corpus.txt run.toml whole.safetensors "$case"
  (cd "$case" && timeout --kill-after 5 180 "$here/${world[1]}" "${world[@]:2}" "$here/$(basename "$0")" inside "$case" "$gxp") || failed=$((failed + 1))
done
((tried > 0)) || exit 77
((failed == 0)) || { echo "$failed of $tried failed"; exit 1; }
