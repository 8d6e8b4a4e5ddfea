#!/bin/sh
# install-packages.sh PURPOSE...: installs the Debian or Ubuntu packages that are missing to build, test or demo gxp.
# Where nothing is missing it needs no network and no privileges. Exit code 3: cannot install here; it says what is needed.
set -eu

packages_for() {
  case $1 in
    build) echo g++ cmake ninja-build pkg-config libfmt-dev libcli11-dev libtomlplusplus-dev libsodium-dev libxxhash-dev nlohmann-json3-dev libpugixml-dev libyaml-cpp-dev libdeflate-dev libpcre2-dev libutf8proc-dev libsimdjson-dev zlib1g-dev libzstd-dev libisal-dev libdw-dev libprotozero-dev liburing-dev libibverbs-dev ;;
    test) echo catch2 libboost-context-dev nftables ;;
    demo) echo fortunes ;;  # 2.5 MB of English text
    rdma) echo qemu-system-x86 busybox-static cpio kmod iproute2 xz-utils libibverbs1 ibverbs-providers ;;
    lint) echo clang-format clang-tidy ;;
    faults) echo strace ;;
    mpi) echo libopenmpi-dev openmpi-bin ;;
    fuzz) echo clang-14 libclang-rt-14-dev ;;
    *) echo "install-packages.sh: no purpose '$1'; known: build test demo rdma lint faults mpi fuzz" >&2; exit 2 ;;
  esac
}

installed() { [ "$(dpkg-query -W -f '${db:Status-Status}' "$1" 2>/dev/null)" = installed ]; }
available() { [ -n "$(apt-cache madison "$1" 2>/dev/null)" ]; }

wanted=
for purpose in "$@"; do
  wanted="$wanted $(packages_for "$purpose")"
done

if ! command -v apt-get >/dev/null || ! command -v dpkg-query >/dev/null; then
  cat >&2 <<END
gxp installs packages on Debian and Ubuntu only. By Debian's names, it needs:
 $wanted
Where they are there already: make INSTALL=no ...
END
  exit 3
fi

missing=
for package in $wanted; do
  installed "$package" || missing="$missing $package"
done
[ -n "$missing" ] || exit 0

if [ "$(id -u)" = 0 ]; then
  as_root=
elif command -v sudo >/dev/null; then
  as_root=sudo
else
  echo "gxp needs these packages; as root: apt-get install --no-install-recommends$missing" >&2
  exit 3
fi

apt() { $as_root env DEBIAN_FRONTEND=noninteractive apt-get -qq -o DPkg::Lock::Timeout=300 -o Dpkg::Use-Pty=0 "$@"; }
install_missing() { apt install -y --no-install-recommends $missing >/dev/null; }

echo "installing:$missing"
updated=no
for package in $missing; do
  if ! available "$package"; then
    apt update
    updated=yes
    break
  fi
done
# Lists that are out of date name versions that the mirror no longer has.
if ! install_missing; then
  [ $updated = no ] || exit 1
  apt update
  install_missing
fi
