#!/bin/sh
# lint.sh BUILD all|COMMIT: clang-format's check on all C++ files and clang-tidy on those of lib, kernels and cmd; or
# on those that differ from COMMIT or are new. BUILD holds the compile_commands.json of a unity build, whose units are
# checked whole: twenty files take as long as two by themselves. CUDA files are checked for format only. Exit code 1:
# something was found.
set -eu
build=$1
since=$2

if [ "$since" = all ]; then
  files=$(git ls-files)
else
  files=$(git diff --name-only --diff-filter=d "$since"; git ls-files --others --exclude-standard)
fi
sources=$(printf '%s\n' "$files" | grep -E '\.(h|cc|cuh|cu)$' | grep -v '^tests/data/' || true)
[ -n "$sources" ] || { echo 'lint: no C++ file to check'; exit 0; }

for tool in clang-format clang-tidy; do
  command -v $tool >/dev/null || { echo "lint: $tool is missing"; exit 3; }
done
status=0
printf '%s\n' "$sources" | xargs clang-format --dry-run -Werror || status=1

# Files that are checked, as their units include them: "/DIR/lib/base/log.cc".
checked=$(printf '%s\n' "$sources" | grep -E '^(lib|kernels|cmd)/.*\.cc$' | grep -vE '(^|/)cuda' | sed "s|^|$PWD/|" || true)
units=$(sed -n 's/^ *"file": "\(.*\)",\{0,1\}$/\1/p' "$build/compile_commands.json" | grep -E "^$PWD/($build/)?(lib|kernels|cmd)/" | sort -u)
for unit in $units; do
  { echo "$unit"; cat "$unit"; } | grep -qF "$checked" && wanted="${wanted:-} $unit"
done
# Headers and the files of a unit are checked through it. Findings go to stdout; stderr only counts those suppressed.
[ -z "$checked" ] || [ -z "${wanted:-}" ] || printf '%s\n' $wanted | xargs -n 1 -P "$(nproc)" \
  clang-tidy --quiet -p "$build" --extra-arg=-Wno-unknown-warning-option --extra-arg=-Wno-unused-command-line-argument --checks=-bugprone-suspicious-include --header-filter='(lib|cmd|kernels)/.*\.(h|cc)$' 2>/dev/null || status=1
exit $status
