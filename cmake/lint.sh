#!/bin/sh
# lint.sh BUILD all|COMMIT: clang-format's check on all C++ files and clang-tidy on those of lib, kernels and cmd; or
# on those that differ from COMMIT or are new. BUILD holds compile_commands.json. CUDA files are checked for format
# only. Exit code 1: something was found.
set -eu
build=$1
since=$2

if [ "$since" = all ]; then
  files=$(git ls-files)
else
  files=$(git diff --name-only --diff-filter=d "$since"; git ls-files --others --exclude-standard)
fi
sources=$(printf '%s\n' "$files" | grep -E '\.(h|cc|inc|cuh|cu)$' | grep -v '^tests/data/' || true)
units=$(printf '%s\n' "$sources" | grep -E '^(lib|kernels|cmd)/.*\.cc$' | grep -vE '(^|/)cuda' || true)
[ -n "$sources" ] || { echo 'lint: no C++ file to check'; exit 0; }

for tool in clang-format clang-tidy; do
  command -v $tool >/dev/null || { echo "lint: $tool is missing"; exit 3; }
done
status=0
printf '%s\n' "$sources" | xargs clang-format --dry-run -Werror || status=1
# Headers are checked through the units that include them. Findings go to stdout; stderr only counts those suppressed.
[ -z "$units" ] || printf '%s\n' "$units" | xargs -n 1 -P "$(nproc)" clang-tidy --quiet -p "$build" 2>/dev/null || status=1
exit $status
