#!/bin/bash
# run.sh GXP_FUZZ [RUNS]: feeds every reader with RUNS inputs, 10^7 if not said, from its corpus on. A crash, 10 s for one
# input or 1 GiB of memory end it; the input then lies in the folder that is named. Inputs are drawn alike: weights by rare
# features (-entropic=1) take half of the time. What finds new ways through a reader is kept in fuzz-corpus/ of the working
# directory: to add it to the kept one,
#   GXP_FUZZ --reader=NAME -merge=1 tests/fuzz/corpus/NAME fuzz-corpus/NAME
set -euo pipefail
fuzz=$(realpath "$1")
runs=${2:-10000000}
tests=$(realpath "$(dirname "$0")/..")

status=0
fuzz_reader() {
  local reader=$1
  mkdir -p "fuzz-corpus/$reader" "fuzz-failed/$reader"
  "$fuzz" "--reader=$reader" -runs="$runs" -entropic=0 -max_len=8192 -timeout=10 -rss_limit_mb=1024 \
    -print_final_stats=1 -verbosity=0 -artifact_prefix="fuzz-failed/$reader/" \
    "fuzz-corpus/$reader" "$tests/fuzz/corpus/$reader" > "fuzz-$reader.log" 2>&1 &&
    echo "$reader: $(awk '/number_of_executed_units/ { print $2 }' "fuzz-$reader.log") inputs, nothing found" || {
    echo "$reader: failed, see fuzz-$reader.log and fuzz-failed/$reader/"
    return 1
  }
}

for corpus in "$tests"/fuzz/corpus/*/; do
  while (($(jobs -rp | wc -l) >= $(nproc))); do wait -n || status=1; done
  fuzz_reader "$(basename "$corpus")" &
done
while [[ -n $(jobs -p) ]]; do wait -n || status=1; done
exit $status
