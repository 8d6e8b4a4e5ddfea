#!/bin/sh
# run_finetune.sh GXP SOURCE [MODEL [DIR]]: examples/finetune.sh on chats, with a tiny Qwen3 and a tokenizer; or on bytes, with a
# model of tests/data/models; DIR keeps what it writes. Training lowers the loss of data.valid, the runs on 3 ranks have the
# losses of the uninterrupted ones, and what is merged and exported has the loss of the run that it comes from, and its tokenizer.
set -eu
gxp=$1
source=$2
model=${3:-chats}
directory=${4:-}
if [ -z "$directory" ]; then
  directory=$(mktemp -d)
  trap 'rm -rf "$directory"' EXIT
fi
cd "$directory"
export GXP_TRAIN_DEVICE=cpu GXP_TRAIN_THREADS=1

lora_keeps=0.9  # of the loss
if [ "$model" = chats ]; then
  lora_keeps=0.97  # beside random weights
  "$source/tests/docs/chat_model.sh" "$gxp" "$source" model
  MODEL=model DATA=$source/tests/data/documents/messages.jsonl SEQUENCE=96 STEPS=40 LR=3e-3 LORA_LR=1e-2 CHAT=yes PROMPT='Question?' \
    "$source/examples/finetune.sh" "$gxp" >output
else
  export GXP_DATA_TOKENIZER=byte
  cp -r "$source/tests/data/models/$model" model
  # Bytes below 97 are tokens of its vocabulary of 101.
  tr a-z A-Z <"$source/LICENSE" | tr -d '\141-\377' >text.txt
  MODEL=model DATA=text.txt SEQUENCE=32 STEPS=40 LR=3e-3 LORA_LR=1e-2 PROMPT=THE "$source/examples/finetune.sh" "$gxp" >output
fi

fail() {
  cat output
  echo "finetune: $*"
  exit 1
}
# equal A B, less A B: numbers, up to fp32's rounding.
equal() { awk -v a="$1" -v b="$2" 'BEGIN { d = a - b; exit !(a > 0 && d * d < 1e-10 * a * a) }' || fail "$3: $1 is not $2"; }
less() { awk -v a="$1" -v b="$2" 'BEGIN { exit !(a > 0 && a < b) }' || fail "$3: $1 is not below $2"; }
# loss OPTION...: of data.valid.
loss() { "$gxp" train run/finetune/run.toml --evaluate --format json "$@" | sed -n 's/.*"valid_loss": *\([0-9.]*\).*/\1/p'; }

before=$(loss)
lora=$(loss --resume --set checkpoint.dir=run/finetune/lora --set lora.rank=8)
full=$(loss --resume)
less "$lora" "$(awk -v a="$before" -v b="$lora_keeps" 'BEGIN { print a * b }')" LoRA
less "$full" "$(awk -v a="$before" 'BEGIN { print 0.9 * a }')" full
equal "$(loss --set model.init=run/finetune/merged)" "$lora" merged
equal "$(loss --set model.init=run/finetune/full/step-00000040/huggingface)" "$full" exported

awk '/^step, loss/ { ++runs; steps = 20; next } steps { d = $2 - $3; worst = d * d > worst ? d * d : worst; good += NF == 3 && $2 > 0; --steps }
  END { exit !(runs == 2 && good == 40 && worst < 1e-10) }' output || fail 'the resumed runs have other losses'
if [ "$model" = chats ]; then
  for made in merged full/step-00000040/huggingface; do
    for file in tokenizer.json tokenizer_config.json chat_template.jinja; do
      cmp "model/$file" "run/finetune/$made/$file" || fail "$made/$file is not the model's"
    done
  done
fi
echo "$model: loss $before, after LoRA $lora, after full fine-tuning $full"
