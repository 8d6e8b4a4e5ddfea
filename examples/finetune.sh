#!/bin/sh
# finetune.sh GXP: fine-tunes a Hugging Face model on 2 ranks, first with LoRA, then in full. It prints each command
# before it runs it, as a tutorial. Everything goes to run/finetune/.
#
#   MODEL=DIR DATA=FILE [NAME=VALUE]... examples/finetune.sh gxp
#
# MODEL        directory with config.json, safetensors files and a tokenizer, as Hugging Face has it
# DATA         chats or texts as JSON lines, plain text, or token ids in an .npy array (gxp.toml(5), data.train)
# VALID        data for the evaluation; the default, DATA, shows what the model has memorised
# SEQUENCE     tokens per row (256), at most the model's context
# STEPS        training steps (100), rounded down to an even number
# LR, LORA_LR  learning rates (2e-5, 2e-4)
# PROMPT       text to continue ("The"); with CHAT=yes, the message of a user, which the model's chat template wraps
#
# GXP_SECTION_KEY=VALUE in the environment changes any other setting, such as GXP_TRAIN_PRECISION=bf16.
set -eu
gxp=$1
top=run/finetune
model=${MODEL:?is the directory of the model to fine-tune}
data=${DATA:?is the file of the token ids to train on}
half=$((${STEPS:-100} / 2))
steps=$((2 * half))

say() {
  echo
  printf '# %s\n' "$@"
}
run() {
  echo "\$ gxp $*"
  "$gxp" "$@"
}
checkpoint() { printf '%s/step-%08d' "$1" "$2"; }
# The lines "STEP LOSS" of a run.
losses() { sed 's/.*"step":\([0-9]*\),"loss":\([^,]*\),.*/\1 \2/' "$1/metrics.jsonl"; }

rm -rf "$top"
mkdir -p "$top"
# model.init gives all of [model]. A step has 2 ranks x 3 rows. zero3 shards parameters, gradients and optimizer state.
tee "$top/run.toml" <<END
[model]
init = "$model"
[data]
train = ["$data"]
valid = ["${VALID:-$data}"]
sequence = ${SEQUENCE:-256}
[train]
steps = $steps
micro_batch = 3
[optim]
lr = ${LR:-2e-5}
[lr_schedule]
warmup_steps = $((steps / 10))
[parallel]
strategy = "zero3"
[checkpoint]
dir = "$top/full"
every = $half
export = "fp32"
END
say 'The first document as the model gets it. On a terminal, what it learns is green:'
run train "$top/run.toml" --show-data 1

# fine_tune DIR OPTION...: evaluates, trains and evaluates again, then repeats the second half of the run on 3 ranks.
fine_tune() {
  dir=$1
  shift
  set -- "$top/run.toml" --set "checkpoint.dir=$dir" "$@"
  say 'Before training:'
  run train "$@" --nproc 2 --evaluate
  say 'Training:'
  run train "$@" --nproc 2
  say 'After training, with generated tokens:'
  run train "$@" --nproc 2 --resume --evaluate ${CHAT:+--chat} --prompt "${PROMPT:-The}" --generate 16

  say 'A run continues from its newest checkpoint on any number of ranks. Here the first half continues on 3 ranks,' \
    'whose steps have the same 6 rows. On 2 ranks the losses would be the same to the bit. On 3 ranks sums are rounded' \
    'in another order, which changes losses by about 1e-7 in fp32:'
  mkdir "$dir-resumed"
  cp -r "$(checkpoint "$dir" "$half")" "$dir-resumed"
  run train "$@" --set "checkpoint.dir=$dir-resumed" --set train.micro_batch=2 --nproc 3 --resume
  losses "$dir" >"$top/losses"
  echo 'step, loss, loss on 3 ranks:'
  losses "$dir-resumed" | awk 'NR == FNR { uninterrupted[$1] = $2; next } { print $1, uninterrupted[$1], $2 }' "$top/losses" -
}

say 'LoRA trains small matrices next to the weights, which do not change.'
fine_tune "$top/lora" --set lora.rank=8 --set "optim.lr=${LORA_LR:-2e-4}"
adapter=$(checkpoint "$top/lora" "$steps")/huggingface
say "$adapter is a directory of PEFT. This adds the adapter to the weights:"
run convert-ckpt "$model" "$top/merged" --to huggingface --merge "$adapter"
run train "$top/run.toml" --set "model.init=$top/merged" --nproc 2 --evaluate

say 'Full fine-tuning trains all weights.'
fine_tune "$top/full"
exported=$(checkpoint "$top/full" "$steps")/huggingface
say "$exported is a directory that transformers loads. So does gxp:"
run train "$top/run.toml" --set "model.init=$exported" --nproc 2 --evaluate
