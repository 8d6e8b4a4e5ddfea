#!/bin/sh
# run_examples.sh GXP SOURCE: every example of README.md and of the man pages that begins with gxp works as it stands, where
# a run of gxp.toml(5)'s run file has ended; a document's examples run in their order. The environment makes the model
# tiny. Examples for several hosts are left out, and what depends on the health of
# this one or on a run that still trains or has failed. Every run file in examples/ loads.
set -eu
gxp=$1
source=$2
top=$(mktemp -d)
trap 'rm -rf "$top"' EXIT

# Of a man page, the text between .nf and .fi; of any other file, what is fenced by ```.
literal_text() {
  case $1 in
    *.[0-9]) sed -n '/^\.nf$/,/^\.fi$/p' "$1" | sed -e '/^\.[nf][fi]$/d' -e 's/\\-/-/g' ;;
    *) sed -n '/^```/,/^```/p' "$1" ;;
  esac
}

# How fast the machine is right now is no test: the speed gate of an example lets everything pass, and the largest
# messages and many repetitions are left to who reads the figures. Two ranks measure in place of four, which two CPUs with
# other tests run slowly.
examples() {
  literal_text "$1" | sed -n -e 's/^\$ //' -e '/--nnodes/d' -e '/--status/d' -e '/--explain-failure/d' -e '/^gxp topo doctor/d' -e 's/--tolerance [0-9]*%/--tolerance 1000000000%/' \
    -e 's/-e [1-9][0-9]*M/-e 64K/' -e '/^gxp allreduce-test/s/--nproc 4/--nproc 2/' -e 's/--calibrate/& -e 64K/' \
    -e '/^gxp allreduce-test/{/ -n /!s/--nproc 2/& -n 5/g;}' -e '/^gxp /p'
}

run_examples() {
  rm -rf "$top/work"
  cp -r "$top/start" "$top/work"
  cd "$top/work"
  examples "$1" >"$top/examples"
  [ -s "$top/examples" ] || { echo "no example found in $1"; return 1; }
  while IFS= read -r command; do
    case $command in
      'gxp train '*--import* | 'gxp train '*--show-data* | 'gxp train '*--resume* | 'gxp train '*--overwrite* | 'gxp train '*--print-config*) ;;
      'gxp train '*) rm -rf run ;;  # as in a fresh directory: a run does not start over an earlier one
    esac
    # A model's directory gives the shape.
    case $command in
      'gxp train chat.toml'*) command="env -u GXP_MODEL_HIDDEN -u GXP_MODEL_HEADS -u GXP_MODEL_LAYERS -u GXP_MODEL_CONTEXT $command" ;;
    esac
    sh -c "$command" </dev/null >"$top/output" 2>&1 || { echo "$1: fails: $command"; cat "$top/output"; return 1; }
    echo "ok: $command"
  done <"$top/examples"
}

mkdir "$top/bin" "$top/start"
ln -s "$gxp" "$top/bin/gxp"
PATH="$top/bin:$PATH"
export XDG_CACHE_HOME="$top/cache"  # for the profile of --calibrate
export GXP_MODEL_HIDDEN=16 GXP_MODEL_HEADS=2 GXP_MODEL_LAYERS=1 GXP_MODEL_CONTEXT=16 GXP_TRAIN_STEPS=4 \
  GXP_TRAIN_MICRO_BATCH=2 GXP_TRAIN_VALID_BATCHES=1 GXP_LR_SCHEDULE_WARMUP_STEPS=1

cd "$top/start"
literal_text "$source/man/gxp.toml.5" >run.toml
sed -n '/^```toml/,/^```/{/^```/!p;/^```$/q}' "$source/README.md" >chat.toml  # its first run file
sh "$source/tests/docs/chat_model.sh" "$gxp" "$source" Qwen3-0.6B
for i in 1 2 3 4 5 6 7 8; do cat "$source/tests/data/documents/messages.jsonl"; done >chats.jsonl
cp "$source/LICENSE" corpus.txt
cp "$source/LICENSE" held-out.txt
cp -r "$source/tests/data/ckpt/hf_gpt2" gpt2
cp -r "$source/tests/data/models/qwen3" qwen3
cp -r "$source/tests/data/models/qwen3-lora-qv" adapter
cp "$source/tests/data/configs/deepspeed/zero2_fp16_auto.json" ds_config.json
ln -s "$source/examples" examples
for file in topo before after bare vm; do gxp topo --from dgx-h100 --format nccl-xml >"$file.xml"; done
gxp train run.toml >"$top/output" 2>&1 || { cat "$top/output"; exit 1; }

# What other programs leave.
folders=$source/tests/data/ckpt/folders
cp -r "$folders/trainer" trainer-output
cp -r "$folders/accelerate" accelerate-state
cp -r "$folders/gpt2" my-gpt2
cp -r "$folders/nanogpt" nanogpt
cp -r "$folders/llama" Llama-3.1-8B
cp -r "$folders/meta-llama" Meta-Llama
mkdir fsdp-run deepspeed-run torchtitan
cp -r "$folders/torchtitan" torchtitan/checkpoint
gxp convert-ckpt run/checkpoints fsdp-run/step-100 --to dcp >"$top/output" 2>&1 || { cat "$top/output"; exit 1; }

for document in "$source/README.md" "$source"/man/*.1; do
  run_examples "$document"
done
cd "$source"
for file in examples/*.toml; do
  [ "$file" != examples/cluster.toml ] || continue  # no run file; the tests of lib/topo load it
  env -i "$top/bin/gxp" train "$file" --print-config >"$top/output" || { echo "does not load: $file"; exit 1; }
done
