# shellcheck shell=bash
# The matrix of faults, phases and ranks; faults.sh sources it.
#   fault KIND PHASE WHO HOSTS AFTER
# KIND
#   kill, oom           SIGKILL; the OOM killer, in a memory cgroup
#   stop, pause         SIGSTOP for good; for a second
#   limit, full         a rank may not write files any more; the disk of the checkpoints is full
#   cut, hole           the cable of a host is out, or its packets vanish in both directions (hole), those that it sends
#   hole-from, hole-to  or those that it is sent: for good, or until the launchers have noticed
#   blink, gap          likewise (cut, hole) for a second
#   crash               the host is gone without a word: half-open connections
#   slow, lossy         10 Mbit/s; 5 % of the packets are lost
#   reader              nobody reads what the launcher of host 0 prints (err, out) until all steps are done
#   clock               the host's monotonic clock is 10^6 s ahead, and its first rank gets SIGSTOP. The time of day cannot be
#                       set for one process alone, so no case does
# PHASE
#   joining, connecting, first-step, loading (of a checkpoint), restarting (the next attempt), ending (the last step, the last
#   checkpoint): from a line of the log or the start of the ranks on, after a random time of up to 40 ms
#   forward, backward, update: a random moment in the first third of a step, in what follows, in the last tenth, by the
#   duration of the step before it; nothing outside of a rank tells where in a step it is
#   saving: .step-N.partial is there
# HOSTS: 1 with 4 ranks (no root needed), or 2 with 2 ranks each
# AFTER
#   ends                the launchers end within a minute, or 20 s of a kill, with the right exit codes and name the culprit first
#   restarts            --max-restarts: the warning names the culprit, the exit code is 0
#   goes-on             exit code 0 without an error; as with restarts, the results come once
# In the end the losses of all steps are those of an undisturbed run, after `ends` by a run that resumes. No process, no shared
# memory, no temporary file is left, no checkpoint that the log told of is lost, and after the last run no partial one is there.
matrix_steps=30
phases="joining connecting first-step forward backward update saving loading restarting ending"

matrix_cases() {  # ROOT: whether there may be two hosts
  local root=$1 phase rank host n=0 after kind most=1
  [[ $root == yes ]] || most=0
  has_memory_cgroup || echo "skipped: oom, as no memory cgroup can be made" >&2
  for phase in $phases; do
    for rank in 0 1 2 3; do
      for kind in kill oom stop pause limit; do
        has_memory_cgroup || [[ $kind != oom ]] || continue
        # Both on one host and on two, by turns.
        for after in $(afters $kind $rank); do echo "fault $kind $phase rank-$rank $(((n++ % 2) * most + 1)) $after"; done
        ((n++))
      done
      ((n++))
    done
    ((n++))
  done
  for phase in $phases; do
    for kind in err out; do echo "fault reader $phase $kind 1 goes-on"; done
    [[ $root == yes ]] || continue
    echo "fault full $phase disk 1 ends"
    for host in 0 1; do for kind in crash cut hole; do echo "fault $kind $phase host-$host 2 ends"; done; done
    for kind in blink gap slow lossy; do echo "fault $kind $phase host-$((n++ % 2)) 2 goes-on"; done
    for kind in hole-from hole-to; do echo "fault $kind $phase host-1 2 ends"; done
    # Launchers that have not met yet make no first attempt.
    [[ $phase == joining ]] || for kind in cut hole hole-from hole-to; do echo "fault $kind $phase host-1 2 restarts"; done
  done
  [[ $root == no ]] || for host in 0 1; do for after in ends restarts; do echo "fault clock backward host-$host 2 $after"; done; done
}
afters() {  # KIND RANK
  case $1-$2 in
    kill-* | stop-*) echo ends restarts ;;
    oom-[02]) echo restarts ;;
    pause-*) echo goes-on ;;
    *) echo ends ;;
  esac
}

# Of all kinds, for `make test`.
short_cases() {
  cat <<'TEXT'
fault kill joining rank-2 2 restarts
fault stop connecting rank-3 1 restarts
fault kill forward rank-1 1 ends
fault oom backward rank-3 1 ends
fault limit update rank-2 2 ends
fault stop loading rank-1 2 ends
fault kill restarting rank-0 1 ends
fault pause ending rank-2 2 goes-on
fault slow connecting host-0 2 goes-on
fault hole first-step host-0 2 ends
fault crash forward host-0 2 ends
fault hole-to forward host-1 2 ends
fault lossy backward host-1 2 goes-on
fault cut backward host-1 2 restarts
fault reader update err 1 goes-on
fault gap update host-1 2 goes-on
fault full saving disk 1 ends
fault hole-from saving host-1 2 ends
fault blink loading host-0 2 goes-on
fault clock backward host-1 2 ends
TEXT
}

# Version 1, or 2.
memory_cgroup() {
  awk '$3 == "cgroup" && $4 ~ /memory/ { print $2; exit }' /proc/mounts | grep . && return
  local root; root=$(cgroup_v2)
  [[ -n $root ]] && grep -qw memory "$root/cgroup.subtree_control" && echo "$root"
}
has_memory_cgroup() {
  local root; root=$(memory_cgroup)
  [[ -n $root ]] && mkdir "$root/gxp-$$" 2>/dev/null && rmdir "$root/gxp-$$"
}

# What an undisturbed run does, and a checkpoint of step 10 to resume from.
prepare_matrix() {
  export MATRIX_LOSSES=$PWD/matrix_losses PREPARED=$PWD/prepared
  rm -r ck
  sed -i "s/^steps = .*/steps = $matrix_steps/; s/^micro_batch = .*/micro_batch = 64/" tiny.toml
  "$GXP" train tiny.toml --nproc 4 --set checkpoint.every=10 --set checkpoint.keep=0 >out 2>err || { cat err; exit 1; }
  losses ck/metrics.jsonl >"$MATRIX_LOSSES"
  rm -r ck/step-*[23]0
  mv ck "$PREPARED"
}

# Without a process.
exec 7<> <(:)
nap() { local s; printf -v s '%d.%03d' $(($1 / 1000)) $(($1 % 1000)); read -rt "$s" -u 7 || :; }  # MILLISECONDS
look_for() {  # COMMAND...: at once, within a minute; the command starts no process
  local end=$((SECONDS + 60))
  until "$@"; do ((SECONDS < end)) || return 1; nap 1; done
}
count_steps() { metrics=(); [[ ! -s ck/metrics.jsonl ]] || mapfile -t metrics <ck/metrics.jsonl; }
has_steps() { count_steps; ((${#metrics[@]} >= $1)); }
logged() { [[ -e err0 && $(<err0) == *"$1"* ]]; }
saves() { compgen -G 'ck/.step-*' >/dev/null; }

# The options that the phase needs.
phase_options() {
  case $phase in
    saving) options+=(--set checkpoint.every=1 --set checkpoint.async=$( ((RANDOM % 2)) && echo true || echo false)) ;;
    loading) mkdir -p ck; cp -r "$PREPARED"/. ck; options+=(--resume) ;;
  esac
  case $after-$phase in
    restarts-*) options+=(--max-restarts 3) ;;
    *-restarting) options+=(--max-restarts 1) ;;
  esac
}

await_moment() {
  case $phase in
    joining) until_true all_ranks_there ;;
    connecting | loading) look_for logged 'identity from' && nap $((RANDOM % 40)) ;;
    first-step) look_for logged 'memory per rank' && nap $((RANDOM % 20)) ;;
    saving) look_for has_steps $((3 + RANDOM % 20)) && look_for saves ;;
    restarting) kill_and_await_restart && nap $((RANDOM % 40)) ;;
    ending) look_for has_steps $((STEPS - 1)) && nap $((RANDOM % 40)) ;;
    *) look_for has_steps $((2 + RANDOM % (STEPS - 5))) && nap_in_step ;;
  esac
}
nap_in_step() {
  local ms percent
  [[ ${metrics[-1]} =~ \"step_ms\":([0-9]+) ]] && ms=${BASH_REMATCH[1]} || ms=20
  case $phase in
    forward) percent=$((RANDOM % 33)) ;;
    backward) percent=$((33 + RANDOM % 57)) ;;
    update) percent=$((90 + RANDOM % 10)) ;;
  esac
  nap $((ms * percent / 100))
}
kill_and_await_restart() {
  look_for has_steps 13 || return
  local killed; killed=$(process_of 3)
  kill -KILL "$killed"
  look_for logged 'warn restart 1' && until_true all_ranks_there && until_true new_rank "$killed"
}
new_rank() { [[ $(process_of 3) != "$1" ]]; }

launcher_of() { local all=($launchers); echo "${all[$1]}"; }  # HOST
process_of() { local all=($(ranks "$(launcher_of $(($1 / per_host)))")); echo "${all[$(($1 % per_host))]-}"; }  # RANK

# The environment, options and files of a case, and both launchers.
begin() {
  local options=()
  timeout=5  # comm.timeout_s
  [[ $after != goes-on ]] || timeout=20
  export TMPDIR=$PWD/tmp; mkdir tmp
  config "$STEPS" $timeout 64
  [[ $kind != full ]] || { mkdir ck && mount -t tmpfs -o size=4m tmpfs ck; }
  phase_options
  [[ $kind != reader ]] || await_reader
  [[ $kind != clock ]] || ahead=${who#host-}
  launch $((timeout + 3)) --set checkpoint.every=10 "${options[@]}"
}

# What the victim is: a rank's process, or a host.
fault() {  # KIND PHASE WHO HOSTS AFTER
  kind=$1 phase=$2 who=$3 after=$5 STEPS=$matrix_steps
  per_host=$((4 / $4)) victim="" ahead="" dead=""
  [[ $4 == 2 ]] || unset HOSTS
  begin
  await_moment || fail "it does not come to this phase"
  case $who in rank-*) victim=$(process_of "${who#rank-}") ;; host-*) victim=host${who#host-} ;; esac
  [[ -n $victim || $who != rank-* || $phase == ending ]] || fail "no process of $who"
  local begun=$SECONDS
  strike
  case $after in
    ends) expect_end ;;
    restarts) expect_restart ;;
    goes-on) expect_success ;;
  esac
  local bound=60
  [[ $kind-$after != @(kill|oom)-ends ]] || bound=20
  ((SECONDS - begun <= bound)) || fail "it takes $((SECONDS - begun)) s"
  relieve
  is_clean
  [[ $after != ends ]] || resume
  is_whole
}

strike() {
  case $kind in
    kill) kill -KILL $victim ;;
    stop) kill -STOP $victim ;;
    pause) kill -STOP $victim; nap 1000; kill -CONT $victim ;;
    oom) starve ;;
    limit) prlimit --pid "$victim" --fsize=100 ;;
    full) head -c 5M /dev/zero >ck/filler || : ;;
    cut) "$HOSTS" cut $victim ;;
    hole) "$HOSTS" lose $victim 100 ;;
    hole-*) "$HOSTS" lose $victim 100 "${kind#hole-}" ;;
    blink) "$HOSTS" cut $victim; nap 1000; relieve ;;
    gap) "$HOSTS" lose $victim 100; nap 1000; relieve ;;
    crash) dead=${who#host-}; "$HOSTS" crash $victim ;;
    slow) "$HOSTS" rate $victim 10mbit ;;
    lossy) "$HOSTS" lose $victim 5 ;;
    reader) clog ;;
    clock) kill -STOP "$(process_of $((ahead * per_host)))" ;;
  esac 2>>faults.log || [[ $phase == ending ]] || fail "no $kind: $(tail -n 1 faults.log)"
}
relieve() {
  case $kind in
    cut | hole* | blink | gap | lossy) "$HOSTS" heal $victim ;;
    full) rm ck/filler ;;
  esac
}

# The OOM killer ends the rank rather than the process that takes all the memory of its cgroup.
starve() {
  cgroup=$(memory_cgroup)/gxp-$(basename "$PWD")
  mkdir "$cgroup" && echo 8M >"$(compgen -G "$cgroup/memory.limit_in_bytes" || echo "$cgroup/memory.max")" &&
    echo 1000 >"/proc/$victim/oom_score_adj" && echo "$victim" >"$cgroup/cgroup.procs" || return
  (echo -900 >/proc/$BASHPID/oom_score_adj; echo $BASHPID >"$cgroup/cgroup.procs"; exec tail /dev/zero) 2>/dev/null &
  hog=$!
  wait $hog 2>/dev/null
  return 0
}

# The launcher writes into a pipe; who reads it stops, and the pipe is full.
await_reader() {
  mkfifo pipe
  cat pipe >"$who"0 &
  reader=$!
  if [[ $who == err ]]; then err_to=pipe; else out_to=pipe; fi
}
clog() {
  kill -STOP $reader
  timeout 0.3 yes '' >pipe
  look_for has_steps "$STEPS" || fail "it waits for its reader"
  nap 500
  kill -CONT $reader
}

# Of the launchers that are left, with the files that tell of them.
expect_end() {
  local host code expected
  for host in $(hosts_left); do
    wait "$(launcher_of $host)"; code=$?
    if [[ $phase == ending && $code == 0 ]]; then has_steps "$STEPS" || fail "exit code 0 after ${#metrics[@]} steps"; continue; fi
    expected=5
    [[ $kind == full || ($kind == limit && $host == $((${who#rank-} / per_host))) ]] && expected=4
    [[ $code == $expected ]] || fail "host $host: exit code $code, expected $expected"
    blames "$host" $expected
    # A rank that fails by itself is the reason.
    [[ $phase != restarting || $kind == @(limit|full) ]] || grep -q 'no restart: ' err$host || fail "err$host: why is there no restart?"
  done
}
hosts_left() { local host; for ((host = 0; host < 4 / per_host; host++)); do [[ $host == "$dead" ]] || echo $host; done; }
# How the launcher of HOST may name who is to blame. Of another host that it cannot hear, it knows no more. Where host 1 can
# still hear host 0, or can again, it is told of those that rank 0 does not hear: its own ranks. Two ranks that measure their
# connection when it fails are both named.
culprit() {
  local ranks=[01]
  case $kind-$1 in
    cut-0 | hole-0 | hole-*-0 | crash-0) echo 'rank [23]\|host 1\|rank [01]: it and rank [23]' ;;
    cut-1 | hole-1 | hole-*-1 | crash-1)
      [[ $kind != hole-from && $after == ends ]] || ranks=[0-3]
      echo "\(connect to \|join \)\?rank $ranks\|host 0"
      ;;
    clock-*) echo "rank $((ahead * per_host))" ;;
    *) echo "\(connect to \|join \)\?${who/-/ }" ;;
  esac
}
# What the launcher of HOST has said of the attempt that the fault strikes.
said() { if [[ $phase == restarting ]]; then sed '1,/warn restart 1/d' err$1; else cat err$1; fi; }
# The first error is about the culprit. A rank that fails by itself tells it itself on its host.
blames() {  # HOST CODE
  local first; first=$(said $1 | grep -m 1 ' error ')
  case $kind-$2 in
    full-*) grep -q 'No space left' <<<"$first" ;;
    limit-4) grep -q "^gxp\[${who/-/ }\] error " <<<"$first" ;;
    *) sed 's/.* error //' <<<"$first" | grep -q "^\($(culprit $1)\)" ;;
  esac || fail "err$1 does not name $(culprit $1) first: $first"
}
expect_restart() {
  local host code
  case $kind in cut | hole*) await_notice; relieve ;; esac
  for host in $(hosts_left); do
    wait "$(launcher_of $host)"; code=$?
    [[ $code == 0 ]] || fail "host $host: exit code $code, expected 0"
    # Too late for the run, or too short.
    [[ $phase == ending && $(<err$host) != *'warn restart 1'* ]] && continue
    [[ $phase == restarting && $kind != [kos]* && $(<err$host) != *'warn restart 2'* ]] && continue
    # In the end, a host may have done all it had to.
    [[ $phase == ending && $(<err$host) != *' error '* ]] || blames $host 5
    grep 'warn restart' err$host | tail -n 1 | grep -q "$(culprit 0)\|$(culprit 1)" || fail "err$host: no restart for $(culprit $host)"
  done
}
# Until the attempt has ended on both hosts, or for as long as they may meet.
await_notice() {
  if [[ $phase == restarting ]]; then nap 2000; else until_true has_noticed; fi
}
has_noticed() {
  local told; told=$(grep -l 'error\|restart' err0 err1 | wc -l)
  ((told < 2)) || return 0
  [[ $phase == ending ]] && { ((told == 1)) || ! kill -0 $launchers 2>/dev/null; }
}
expect_success() {
  local host code
  for host in $(hosts_left); do
    wait "$(launcher_of $host)"; code=$?
    [[ $code == 0 ]] || fail "host $host: exit code $code, expected 0"
    ! said $host | grep -q ' error\|error:' || fail "an error on host $host"
  done
  [[ $kind != reader ]] || wait $reader
}

is_clean() {
  local host
  until_true no_process_here || fail "processes are left"
  [[ -z $(ls tmp) ]] || fail "tmp: $(ls tmp | xargs)"
  for host in $([[ ! -v HOSTS ]] || hosts_left); do
    [[ -z $("$HOSTS" on host$host ls /dev/shm) ]] || fail "host $host has shared memory left"
  done
}
no_process_here() {
  local process
  for process in /proc/[0-9]*; do [[ $process/cwd -ef . && $process/exe -ef $GXP ]] && return 1; done
  return 0
}

resume() {
  local saved; saved=$(grep -ho 'saved ck/step-[0-9]*' err* | sort | tail -n 1 | cut -d ' ' -f 2)
  [[ -z $saved || -d $saved ]] || fail "$saved is lost: $(ls ck | xargs)"
  local how=--overwrite
  ! has_checkpoint || how=--resume
  local place=()
  [[ ! -v HOSTS ]] || place=("$HOSTS" on "host$(hosts_left | head -n 1)")
  "${place[@]}" "$GXP" train tiny.toml --nproc 4 $how --set checkpoint.every=10 >again 2>&1 || { tail -n 5 again >>err0; fail "it cannot go on"; }
}
is_whole() {
  [[ $after == ends || $(grep -c '^steps: ' out0) == 1 ]] || fail "no results, or twice"
  cmp -s <(losses ck/metrics.jsonl) "$MATRIX_LOSSES" || fail "other losses"
  ! saves || fail "left over: $(ls -A ck | xargs)"
  [[ ! -e ck/.gxp.status ]] || fail "its socket is left"
  "$GXP" convert-ckpt ck --verify >verified 2>&1 || fail "$(tail -n 1 verified)"
}
