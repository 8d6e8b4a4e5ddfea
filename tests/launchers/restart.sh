#!/bin/bash
# A run of four ranks on two hosts loses a rank, then each host's launcher, which is started again; with --max-restarts it ends
# with the weights of a run that has lost nothing. Skipped (77) where two hosts cannot be made.
#   restart.sh GXP
set -euo pipefail
here=$(dirname "$(realpath "$0")")
if [[ ${1-} != inside ]]; then
  "$here/hosts" true 2>/dev/null || { echo "skipped: two hosts need root, ip, tc, nft"; exit 77; }
  scratch=$(mktemp -d)
  trap 'rm -rf "$scratch"' EXIT
  gxp=$(realpath "$1")
  cd "$scratch"
  timeout 300 "$here/hosts" "$here/$(basename "$0")" inside "$gxp"
  exit
fi

gxp=$2
for _ in {1..400}; do echo "a line of text, number $RANDOM"; done >corpus.txt
GXP_JOB_SECRET=$(printf 'ab%.0s' {1..32})
export GXP_JOB_SECRET
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
steps = 3000
micro_batch = 1
threads = 1
[checkpoint]
dir = "run"
every = 20
TEXT

declare -a launchers
start() {
  "$HOSTS" on "host$1" "$gxp" train run.toml --nproc 2 --nnodes 2 --node-rank "$1" --master host0:29655 --max-restarts 3 \
    --join-timeout 30 >>out 2>>err"$1" &
  launchers[$1]=$!
}
fail() { echo "FAILED: $*"; tail -n 15 err0 err1; exit 1; }
# has_restarted COUNT: and made a step since, within a minute.
has_restarted() {
  local tries=600
  until (($(grep -c 'warn restart ' err1) == $1)) && [[ $(tac err0 | grep -m1 -o 'error\|] step\|restart') == '] step' ]]; do
    ((--tries > 0)) || fail "no step after restart $1"
    sleep 0.1
  done
}

start 0
start 1
has_restarted 0
kill -SEGV "$(pgrep -P "${launchers[1]}" | tail -n 1)"
has_restarted 1
for host in 1 0; do
  kill -KILL "${launchers[$host]}"
  wait "${launchers[$host]}" 2>/dev/null || true
  start $host
  has_restarted $((3 - host))
done
for host in 0 1; do wait "${launchers[$host]}" || fail "host $host"; done
"$gxp" convert-ckpt run lost.safetensors --to safetensors >/dev/null 2>&1
rm -rf run
"$HOSTS" on host0 "$gxp" train run.toml --nproc 4 >/dev/null 2>&1
"$gxp" convert-ckpt run whole.safetensors --to safetensors >/dev/null 2>&1
cmp lost.safetensors whole.safetensors || fail "other weights"
