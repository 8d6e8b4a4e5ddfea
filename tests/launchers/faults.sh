#!/bin/bash
# What a run must survive, or must blame on the right rank, again and again:
#   signal SIGNAL ORDER PHASE     a stop signal to the launcher (l) and both ranks (0, 1) in this order, as schedulers and
#                                 cgroups send it: 128 + its number, and a checkpoint of the last step
#   pause WHO PHASE TRANSPORT BY  all, for longer than all deadlines, or a host for less (host-short): the run goes on. A host
#                                 for longer (host-long), or a rank for good: it is named
#   link KIND SECONDS             two hosts cannot hear each other for a time below comm.timeout_s: the same losses
#   slurm PHASE                   scontrol suspend and resume: the run goes on
#   fault KIND PHASE WHO HOSTS AFTER   see fault_matrix.sh
# PHASE: joining, stepping, saving. BY: stop (SIGSTOP), v2 and v1 (freezers of cgroups). Cgroups and two hosts need root.
#   faults.sh GXP [COUNT [PATTERN]]   each case whose line matches PATTERN, COUNT times (1); $JOBS at a time (4)
#   faults.sh GXP --short             some of each kind of fault; 77 if none can be made here
#   faults.sh GXP --list              the cases that can be made here
set -uo pipefail
here=$(dirname "$(realpath "$0")")
. "$here/fault_matrix.sh"

cgroup_v2() { awk '$3 == "cgroup2" { print $2; exit }' /proc/mounts; }
cgroup_v1() { awk '$3 == "cgroup" && $4 ~ /freezer/ { print $2; exit }' /proc/mounts; }
# Whether cgroups of that kind can be made.
has_freezer() {
  local root; root=$("cgroup_$1")
  [[ -n $root ]] && mkdir "$root/gxp-$$" 2>/dev/null && rmdir "$root/gxp-$$"
}

# yes or no.
has_two_hosts() {
  if "$here/hosts" true 2>/dev/null; then echo yes; else echo no; echo "skipped: two hosts need root, ip, tc, nft" >&2; fi
}

cases() {
  local ways=stop way phase transport seconds kind signal order who rank root; root=$(has_two_hosts)
  for way in v2 v1; do if has_freezer $way; then ways+=" $way"; else echo "skipped: cgroups $way cannot be made" >&2; fi; done
  if [[ $root == yes ]]; then
    for seconds in 30 20 10 5 2 1; do for kind in cut lose lose-from lose-to; do echo "link $kind $seconds"; done; done
    for phase in joining stepping saving; do
      if command -v slurmctld >/dev/null; then echo "slurm $phase"; else echo "skipped: no slurmctld" >&2; fi
    done
  fi
  for way in $ways; do for phase in joining stepping saving; do for transport in shm tcp; do
    echo "pause all $phase $transport $way"
    for rank in 0 1; do echo "pause rank-$rank $phase $transport $way"; done
    # Between hosts there is tcp alone; within one, "auto" takes shm.
    [[ $root == no ]] || for who in host-short host-long; do echo "pause $who $phase ${transport/shm/auto} $way"; done
  done; done; done
  for signal in TERM INT; do
    for order in l01 l10 0l1 1l0 01l 10l l l.01; do echo "signal $signal $order stepping"; done  # '.': 0.3 s later
    for phase in joining saving; do for order in l01 10l; do echo "signal $signal $order $phase"; done; done
  done
  matrix_cases "$root"
}

fail() { echo "FAILED  $line: $*"; grep -hv '\] step [0-9]\| saved ' err* | tail -n 20 | sed 's/^/        /'; exit 1; }
lines() { if [[ -e ck/metrics.jsonl ]]; then wc -l <ck/metrics.jsonl; else echo 0; fi; }
losses() { grep -o '"loss":[^,}]*' "$1"; }
# until_true COMMAND...: within a minute.
until_true() {
  local tries=1200
  while ! "$@"; do ((--tries > 0)) || return 1; sleep 0.05; done
}
# Of the launchers given, or of all: their processes, in order.
ranks() { local l; for l in ${@:-$launchers}; do echo $(cat "/proc/$l/task/$l/children" 2>/dev/null); done; }

# config STEPS TIMEOUT [ROWS]
config() {
  head -c 100000 /dev/urandom | base64 >corpus.txt
  [[ -z ${CORPUS-} ]] || cp "$CORPUS" corpus.txt
  cat >tiny.toml <<TEXT
[model]
hidden = 32
layers = 2
heads = 2
context = 32
[data]
train = ["corpus.txt"]
[train]
steps = $1
micro_batch = ${3-2}
threads = 1
[comm]
timeout_s = $2
[checkpoint]
dir = "ck"
keep = 2
TEXT
}

# start JOIN_TIMEOUT PHASE OPTIONS...: returns in the phase.
start() {
  local join=$1 phase=$2; shift 2
  set -- "$@" --set train.log_every=1000
  [[ $phase == saving ]] && set -- "$@" --set checkpoint.every=1
  launch "$join" "$@"
  await_phase "$phase" || fail "it does not begin"
}

# launch JOIN_TIMEOUT OPTIONS...: on one host, or on two if $HOSTS is set.
launch() {
  local join=$1 host prefix; shift
  launchers=""
  if [[ -v HOSTS ]]; then
    export GXP_JOB_SECRET; GXP_JOB_SECRET=$(printf %064d 7)
    for host in 0 1; do
      prefix=()
      [[ ${ahead-} != "$host" ]] || prefix=(unshare --time --monotonic 1000000 --boottime 1000000)
      "$HOSTS" on host$host "${prefix[@]}" "$GXP" train tiny.toml "$@" --join-timeout "$join" --nproc $per_host --nnodes 2 \
        --node-rank $host --master host0:29500 >out$host 2>err$host &
      launchers+="${launchers:+ }$!"
    done
  else
    # A shell lets its background jobs ignore SIGINT.
    env --default-signal=INT "$GXP" train tiny.toml "$@" --join-timeout "$join" --nproc $per_host >"${out_to-out0}" \
      2>"${err_to-err0}" &
    launchers=$!
  fi
}

all_ranks_there() { [[ $(ranks | wc -w) == $((per_host * $(wc -w <<<"$launchers"))) ]]; }
has_lines() { (($(lines) > ${1:-0})); }
has_checkpoint() { compgen -G 'ck/step-*' >/dev/null; }
await_phase() {
  case $1 in
    joining) until_true all_ranks_there ;;
    stepping) until_true has_lines ;;
    saving) until_true has_checkpoint ;;
  esac
}

freeze() {  # yes|no
  case $by in
    v2) if [[ $1 == yes ]]; then echo 1; else echo 0; fi >"$cgroup/cgroup.freeze" ;;
    v1) if [[ $1 == yes ]]; then echo FROZEN; else echo THAWED; fi >"$cgroup/freezer.state" ;;
  esac
}
pause() {  # PROCESS...
  paused=$*
  if [[ $by == stop ]]; then kill -STOP $paused; return; fi
  cgroup=$("cgroup_$by")/gxp-$(basename "$PWD")
  mkdir "$cgroup"
  local process; for process in $paused; do echo "$process" >"$cgroup/cgroup.procs"; done
  freeze yes
}
continue_all() { if [[ $by == stop ]]; then kill -CONT $paused 2>/dev/null; else freeze no; fi; }

wait_for() {  # CODE: of the first launcher; without an error but for 5
  local code
  wait ${launchers%% *}; code=$?
  [[ $code == "$1" ]] || fail "exit code $code, expected $1"
  [[ $1 == 5 ]] || ! grep -q ' error\|error:' err* || fail "an error"
}
is_saved() {
  local last; last=$(tail -n 1 ck/metrics.jsonl 2>/dev/null | grep -o '"step":[0-9]*' | cut -d: -f2)
  [[ -z $last ]] || ls ck | grep -qx "step-0*$last" || fail "no checkpoint of step $last: $(ls ck | xargs)"
}
# names WHO FILE: the first error is about WHO, whichever ranks tell it.
names() { grep -m 1 ' error ' "$2" | sed 's/.* error //' | grep -q "^\($1\)" || fail "$2 does not name $1 first"; }

signal() {  # SIGNAL ORDER PHASE
  config 1000000 60
  start 60 "$3"
  local order=$2 all target i
  all=($launchers $(ranks))
  for ((i = 0; i < ${#order}; i++)); do
    case ${order:i:1} in l) target=${all[0]} ;; 0) target=${all[1]} ;; 1) target=${all[2]} ;; .) sleep 0.3; continue ;; esac
    kill -"$1" "$target" 2>/dev/null
  done
  wait_for $((128 + $(kill -l "$1")))
  [[ $3 == joining ]] || has_lines || fail "no step"
  is_saved
}

pause_case() {  # WHO PHASE TRANSPORT BY
  local who=$1 phase=$2 before victim; by=$4
  local timeout=3
  [[ $who != host-short ]] || timeout=15  # its peers do not pause
  config 1000000 $timeout
  start $timeout "$phase" --set comm.transport="$3"
  case $who in
    all) pause $launchers $(ranks); sleep 5 ;;
    rank-*) pause "$(ranks | cut -d ' ' -f $((${who#rank-} + 1)))" ;;
    host-*) victim=${launchers##* }; pause "$victim" $(ranks "$victim"); [[ $who == host-short ]] && sleep 3 || sleep 6 ;;
  esac
  before=$(lines)
  case $who in
    rank-*) wait_for 5; names "${who/-/ }" err0; continue_all ;;
    host-long) wait_for 5; names 'rank [23]' err0; continue_all ;;
    *)
      continue_all
      until_true has_lines "$before" || fail "it does not go on"
      kill -TERM ${launchers%% *} 2>/dev/null
      wait_for 143
      is_saved
      ;;
  esac
}

link() {  # KIND SECONDS
  per_host=1
  config "$STEPS" 60
  start 60 stepping --set checkpoint.every=150
  until_true has_lines 40 || fail "it does not begin"
  case $1 in
    cut) "$HOSTS" cut host1 ;;
    lose) "$HOSTS" lose host1 100 ;;
    lose-*) "$HOSTS" lose host1 100 "${1#lose-}" ;;
  esac
  sleep "$2"
  (($(lines) < STEPS)) || fail "it had ended before"
  "$HOSTS" heal host1
  wait_for 0
  cmp -s <(losses ck/metrics.jsonl) "$LOSSES" || fail "other losses"
}

all_tasks_there() { [[ $(pgrep -cf "^$GXP train") == 4 ]]; }
slurm() {  # PHASE
  local phase=$1 job before code
  config 1000000 3
  local options=(--join-timeout 3)
  [[ $phase == saving ]] && options+=(--set checkpoint.every=1)
  srun -N2 -n4 "$GXP" train tiny.toml "${options[@]}" >out 2>err & job=$!
  if [[ $phase == joining ]]; then until_true all_tasks_there; else await_phase "$phase"; fi || fail "it does not begin"
  local id; id=$(squeue --noheader --format %i)
  scontrol suspend "$id" || fail "no suspension"
  sleep 3  # slurmd sends SIGTSTP, and SIGSTOP 2 s later
  before=$(lines)
  sleep 4
  (($(lines) == before)) || fail "it was not suspended"
  scontrol resume "$id" || fail "no resumption"
  until_true has_lines "$before" || fail "it does not go on"
  scancel --signal=TERM "$id"
  wait $job; code=$?
  [[ $code == 143 ]] || fail "exit code $code, expected 143"
  ! grep ' error ' err | grep -qv '^srun' || fail "an error"
  is_saved
}

run_case() {
  local folder; folder=$(mktemp -d) && cd "$folder" || exit 1
  cgroup="" by="" per_host=2
  trap tidy EXIT; trap 'exit 143' TERM
  case $1 in pause) pause_case "${@:2}" ;; *) "$@" ;; esac
  echo "ok      $line"
}
tidy() {
  { kill -KILL $(jobs -p); wait; } 2>/dev/null
  if [[ -n $cgroup ]]; then
    freeze no
    kill -KILL $(cat "$cgroup/cgroup.procs") 2>/dev/null
    until_true rmdir "$cgroup" 2>/dev/null
  fi
  ! mountpoint -q ck || umount ck
  rm -rf "$PWD"
}

if [[ $1 == --limited ]]; then
  timeout --kill-after 5 240 "$here/faults.sh" --case $2 || status=$?
  ((${status-0} <= 1)) || echo "FAILED  $2: status $status"
  exit 0  # any other would end xargs
fi
if [[ $1 == --case ]]; then
  line="${*:2}"
  case $line in
    slurm*) [[ -v HOSTS ]] || exec "$here/slurm" "$here/faults.sh" "$@" ;;
    link* | 'pause host'* | fault*' 2 '*) [[ -v HOSTS ]] || exec "$here/hosts" "$here/faults.sh" "$@" ;;
    'fault full'*) [[ -v MOUNTS ]] || MOUNTS=own exec unshare --mount "$here/faults.sh" "$@" ;;
  esac
  run_case "${@:2}"
  exit
fi

export GXP STEPS=400 CORPUS LOSSES
GXP=$(realpath "$1")
[[ ${2-} != --list ]] || { cases; exit; }
folder=$(mktemp -d) && trap 'rm -rf "$folder"' EXIT && cd "$folder" || exit 1
count=1
if [[ ${2-} == --short ]]; then
  matrix_cases "$(has_two_hosts)" | grep -xF "$(short_cases)" >table
  [[ -s table ]] || exit 77
else
  count=${2:-1}
  cases | grep -e "${3-.}" >table
fi
config $STEPS 60
"$GXP" train tiny.toml --nproc 2 >out 2>err || { cat err; exit 1; }
CORPUS=$folder/corpus.txt LOSSES=$folder/losses
losses ck/metrics.jsonl >losses
prepare_matrix
for ((i = 0; i < count; i++)); do cat table; done | shuf | xargs -P "${JOBS:-4}" -I '{}' "$here/faults.sh" --limited '{}' | tee log
echo
sed 's/^fault \([^ ]*\).*/fault \1/; t; s/ .*//' table | sort -u | while read -r kind; do
  printf '%s %d/%d\n' "$kind" "$(grep -c "^ok  *$kind " log)" $(($(grep -c "^$kind " table) * count))
done
(($(grep -c '^ok' log) == $(wc -l <table) * count))
