#!/bin/sh
# demo.sh GXP [TEXT]: trains examples/demo.toml on TEXT with 2 ranks and lets the model write. The working directory is
# the top of the tree. Without TEXT: the sayings of Debian's package fortunes, 2.5 MB. Everything goes to run/demo/.
set -eu
gxp=$1
text=${2:-}
dir=run/demo

fail() {
  echo "demo: $*" >&2
  exit 2
}

# One text: the given file, or all of fortunes but its indices (.dat) and links (.u8).
collect_text() {
  if [ -n "$text" ]; then
    cat "$text"
  else
    find /usr/share/games/fortunes -type f ! -name '*.dat' ! -name '*.u8' | LC_ALL=C sort | xargs cat
  fi
}

# The first nine tenths are trained on; the last tenth tells what was learnt.
split_text() {
  collect_text >"$dir/text.txt"
  size=$(wc -c <"$dir/text.txt")
  [ "$size" -ge 400000 ] || fail "${text:-fortunes} has $size bytes; the demo needs 400000"
  cut=$((size * 9 / 10))
  head -c "$cut" "$dir/text.txt" >"$dir/train.txt"
  tail -c "+$((cut + 1))" "$dir/text.txt" >"$dir/valid.txt"
  rm "$dir/text.txt"
  echo "text: $size bytes of ${text:-/usr/share/games/fortunes}; the last tenth is kept for validation"
}

# The generated text, which the facts of the run follow; an untrained model writes control characters too.
generated() { sed '/^steps: /,$d' "$dir/result.txt" | tr -d '\000-\010\013-\037\177'; }

# fact NAME: the value in the result's line "NAME: value".
fact() { sed -n "s/^$1: //p" "$dir/result.txt"; }

[ -z "$text" ] || [ -r "$text" ] || fail "cannot read $text"
rm -rf "$dir"
mkdir -p "$dir"
split_text
"$gxp" train examples/demo.toml --nproc 2 --prompt 'The ' --generate 600 >"$dir/result.txt"
cat <<END

The model writes, a byte at a time:
----
$(generated)
----
validation loss $(fact 'validation loss, start') -> $(fact 'validation loss, end') nats per byte, $(fact 'tokens\/s (median step)') tokens/s

Next, each as it stands:
  # go on from the checkpoint
  $gxp train examples/demo.toml --nproc 2 --resume --set train.steps=2400
  # four ranks over TCP
  $gxp train examples/demo.toml --nproc 4 --set comm.transport=tcp --set train.steps=200 --set checkpoint.dir=run/tcp/checkpoints --overwrite
  # every setting and where it comes from
  $gxp train examples/demo.toml --print-config
  # what the checkpoint holds; its weights under Hugging Face's names
  $gxp convert-ckpt $dir/checkpoints --inspect
  $gxp convert-ckpt $dir/checkpoints $dir/model.safetensors --to safetensors
END
