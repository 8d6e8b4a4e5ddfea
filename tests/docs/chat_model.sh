#!/bin/sh
# chat_model.sh GXP SOURCE DIR: writes a tiny model that can chat: Qwen3's shape, random weights, a tokenizer, a chat template.
set -eu
gxp=$1
source=$2
model=$3
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/shape"
cp "$source/tests/data/text/tokenizers/qwen/tokenizer.json" "$source/tests/data/text/tokenizers/qwen/tokenizer_config.json" \
  "$source/tests/data/text/chat/chatml/chat_template.jinja" "$work/shape"
sed -e 's/"vocab_size": 101/"vocab_size": 1024/' -e 's/"max_position_embeddings": 40/"max_position_embeddings": 256/' \
  -e 's/"eos_token_id": 2/"eos_token_id": 1002/' "$source/tests/data/models/qwen3/config.json" >"$work/shape/config.json"
cat >"$work/run.toml" <<END
[model]
config = "$work/shape"
[data]
train = ["$source/tests/data/documents/messages.jsonl"]
sequence = 32
cache = "$work/tokens"
[train]
steps = 1
[optim]
lr = 1e-12
[checkpoint]
dir = "$work/run"
export = "fp32"
END
env -i "$gxp" train "$work/run.toml" >"$work/output" 2>&1 || { cat "$work/output"; exit 1; }
mv "$work/run/step-00000001/huggingface" "$model"
