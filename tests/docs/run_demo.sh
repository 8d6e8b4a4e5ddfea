#!/bin/sh
# run_demo.sh GXP SOURCE: examples/demo.sh brings the validation loss from above 5.5 nats per byte to below 1.9. Exit code 77,
# skipped, where the text of the package fortunes is missing.
set -eu
[ -d /usr/share/games/fortunes ] || { echo 'skipped: the package fortunes is not installed'; exit 77; }
directory=$(mktemp -d)
trap 'rm -rf "$directory"' EXIT
cp -r "$2/examples" "$directory"
cd "$directory"
examples/demo.sh "$1" | tee output
awk '/^validation loss / { found = $3 > 5.5 && $5 < 1.9 } END { exit !found }' output
