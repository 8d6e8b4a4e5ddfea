#!/bin/bash
# same_weights.sh [--short] GXP: starts one run of four ranks in every way that is installed here, with nothing set but the
# launcher's own line, and compares the final weights. --short: what needs neither root nor pretended hosts. What is skipped
# is named. TORCHRUN: where torchrun is, if not in PATH. Ends with 1 if a way fails or has other weights.
set -uo pipefail
here=$(dirname "$(realpath "$0")")
short=no
[[ ${1-} != --short ]] || { short=yes; shift; }
[[ $# == 1 ]] || { sed -n '2,4s/^# //p' "$0" >&2; exit 2; }
gxp=$(realpath "$1")
if [[ $(id -u) != 0 && $short == no ]]; then
  short=yes
  echo "pretended hosts: skipped: they need root"
fi
if [[ $short == no && -z ${SAME_WEIGHTS_MOUNTS-} ]]; then
  SAME_WEIGHTS_MOUNTS=own exec unshare --mount --propagation private "$0" "$gxp"
fi

# What a user has set must not help. All hosts share the home, which holds no secret yet: in mounts of its own where daemons
# look it up in the user database.
torchrun=$(command -v "${TORCHRUN:-torchrun}")
for variable in $(compgen -e | grep -E '^(GXP_|MASTER_|LOCAL_|XDG_|OMPI_|PMI|SLURM_|HYDRA_|TORCH|RANK$|WORLD_SIZE$)'); do
  unset "$variable"
done
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export HOME=$work
if [[ $short == no ]]; then
  HOME=$(getent passwd 0 | cut -d: -f6)
  made=$(mkdir -pv "$HOME/.config")
  mkdir "$work/config"
  mount --bind "$work/config" "$HOME/.config"
  trap 'umount "$HOME/.config"; [[ -z $made ]] || rmdir "$HOME/.config"; rm -rf "$work"' EXIT
fi
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMP_NUM_THREADS=1

for ((i = 0; i < 400; i++)); do echo "$i comes before $((i + 1)), and $((i * 7 % 31)) after nothing"; done >"$work/text"
cat >"$work/run.toml" <<TEXT
[model]
context = 32
hidden = 32
layers = 2
heads = 2
[data]
train = ["$work/text"]
[train]
steps = 6
micro_batch = 2
threads = 1
TEXT
# rank NAME OPTION...: what the launcher of the way NAME starts.
rank=$work/rank
cat >"$rank" <<TEXT
#!/bin/sh
name=\$1; shift
exec "$gxp" train "$work/run.toml" --set checkpoint.dir="$work/\$name/checkpoints" "\$@"
TEXT
chmod +x "$rank"
export rank torchrun

expected="" failed=0
# check NAME STATUS: a way has ended.
check() {
  local hash=none
  if [[ $2 == 0 ]] && "$gxp" convert-ckpt "$work/$1/checkpoints" "$work/$1.safetensors" --to safetensors >>"$work/$1.log" 2>&1; then
    hash=$(sha256sum "$work/$1.safetensors" | cut -c 1-16)
  fi
  [[ $hash == none ]] || : "${expected:=$hash}"
  printf '%-28s %s\n' "$1" "$hash"
  [[ ${hash:-none} == none || $hash != "$expected" ]] || return 0
  echo "FAILED: $1, status $2"
  sed 's/^/    /' "$work/$1.log"
  failed=$((failed + 1))
}
# way NAME COMMAND...: COMMAND starts the ranks.
way() {
  local status=0
  timeout --kill-after 5 120 "${@:2}" >"$work/$1.log" 2>&1 </dev/null || status=$?
  check "$1" "$status"
}
# twins NAME COMMAND...: two jobs at once, NAME-1 and NAME-2, which stand for TWIN in the command, and 1 and 2 for INDEX.
twins() {
  local pids=() status command
  for i in 1 2; do
    command=("${@:2}")
    command=("${command[@]//TWIN/$1-$i}")
    timeout --kill-after 5 120 "${command[@]//INDEX/$i}" >"$work/$1-$i.log" 2>&1 </dev/null & pids[i]=$!
  done
  for i in 1 2; do status=0; wait "${pids[i]}" || status=$?; check "$1-$i" "$status"; done
}
# refused NAME TEXT COMMAND...: COMMAND fails, and says TEXT.
refused() {
  if ! timeout --kill-after 5 120 "${@:3}" >"$work/$1.log" 2>&1 </dev/null && grep -q "$2" "$work/$1.log"; then
    printf '%-28s %s\n' "$1" "refused as it must be"
    return
  fi
  echo "FAILED: $1: expected to be told: $2"
  sed 's/^/    /' "$work/$1.log"
  failed=$((failed + 1))
}
has() { command -v "$1" >/dev/null || { echo "$2: skipped: no $1"; false; }; }

on_this_host() {
  way gxp "$rank" gxp --nproc 4
  if has mpirun.openmpi "Open MPI"; then
    way openmpi mpirun.openmpi --oversubscribe -n 4 "$rank" openmpi
    twins openmpi-twins mpirun.openmpi --oversubscribe -n 4 "$rank" TWIN
  fi
  if has mpirun.mpich MPICH; then
    way mpich mpirun.mpich -n 4 "$rank" mpich
    twins mpich-twins mpirun.mpich -n 4 "$rank" TWIN
  fi
  if has "${torchrun:-torchrun}" torchrun; then
    way torchrun "$torchrun" --nproc_per_node 4 --no-python "$rank" torchrun
    twins torchrun-twins "$torchrun" --master_port 2950INDEX --nproc_per_node 4 --no-python "$rank" TWIN
  fi
}

# Two ranks on each of two hosts.
on_two_hosts() {
  way two-hosts-gxp "$here/hosts" bash -c '"$HOSTS" on all sh -c "exec $rank two-hosts-gxp --nproc 2 --nnodes 2 \
    --node-rank \$HOST_INDEX --master host0:29500"'
  refused two-homes "host[01] has its own secret file" "$here/hosts" bash -c '"$HOSTS" on host1 mount -t tmpfs tmpfs ~/.config
    "$HOSTS" on all sh -c "exec $rank two-homes --nproc 2 --nnodes 2 --node-rank \$HOST_INDEX --master host0:29500 \
    --join-timeout 5"'
  if has "${torchrun:-torchrun}" "torchrun on two hosts"; then
    way two-hosts-torchrun "$here/hosts" bash -c '"$HOSTS" on all sh -c "exec $torchrun --nnodes 2 --nproc_per_node 2 \
      --node_rank \$HOST_INDEX --master_addr host0 --master_port 29500 --no-python $rank two-hosts-torchrun"'
  fi
  if has sshd "ssh"; then
    ! has mpirun.openmpi "Open MPI over ssh" || way ssh-openmpi "$here/ssh" bash -c \
      'mpirun.openmpi --hostfile $HOSTFILE -n 4 "$rank" ssh-openmpi'
    ! has mpirun.openmpi "Open MPI over ssh" || way ssh-openmpi-rank-0-elsewhere "$here/ssh" bash -c \
      'mpirun.openmpi --host host1:2,host0:2 -n 4 "$rank" ssh-openmpi-rank-0-elsewhere'
    ! has mpirun.mpich "MPICH over ssh" || way ssh-mpich "$here/ssh" bash -c \
      'mpirun.mpich -f $MACHINEFILE -n 4 "$rank" ssh-mpich'
    ! has mpirun.mpich "MPICH over ssh" || way ssh-mpich-rank-0-elsewhere "$here/ssh" bash -c \
      'mpirun.mpich -hosts host1:2,host0:2 -n 4 "$rank" ssh-mpich-rank-0-elsewhere'
  fi
  has slurmctld Slurm || return
  way srun "$here/slurm" srun -N2 -n4 "$rank" srun
  way srun-pmi2 "$here/slurm" srun -N2 -n4 --mpi=pmi2 "$rank" srun-pmi2
  way sbatch "$here/slurm" sbatch --wait -o "$work/sbatch.log" -N2 -n4 --wrap "srun $rank sbatch"
  ! has mpirun.openmpi "Open MPI in salloc" || way salloc-openmpi "$here/slurm" salloc -N2 -n4 \
    mpirun.openmpi "$rank" salloc-openmpi
  ! has mpirun.mpich "MPICH in salloc" || way salloc-mpich "$here/slurm" salloc -N2 -n4 \
    mpirun.mpich "$rank" salloc-mpich
}

on_this_host
[[ $short == yes ]] || on_two_hosts
((failed == 0)) && echo "all ways end with the same weights" || echo "$failed failed"
exit $((failed > 0))
