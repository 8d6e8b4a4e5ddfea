#include "tests/ckpt/system_faults.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <utility>

namespace gxp {
namespace {

bool exchanges = true;
int renames_to_live = -1;  // -1: for ever
std::vector<std::string> synced;

}  // namespace

NoExchange::NoExchange() { exchanges = false; }
NoExchange::~NoExchange() { exchanges = true; }

void die_at_rename(int count) { renames_to_live = count; }

std::vector<std::string> take_synced() { return std::exchange(synced, {}); }

}  // namespace gxp

extern "C" int renameat2(int from_directory, const char* from, int to_directory, const char* to,
                         unsigned flags) noexcept {
  if ((flags & RENAME_EXCHANGE) != 0 && !gxp::exchanges) {
    errno = EINVAL;
    return -1;
  }
  return int(::syscall(SYS_renameat2, from_directory, from, to_directory, to, flags));
}

extern "C" int rename(const char* from, const char* to) noexcept {
  if (gxp::renames_to_live == 0) ::_exit(gxp::kDiedAtRename);
  if (gxp::renames_to_live > 0) --gxp::renames_to_live;
  return int(::syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 0));
}

extern "C" int fsync(int fd) {
  std::error_code error;
  gxp::synced.push_back(
      std::filesystem::read_symlink(fmt::format("/proc/self/fd/{}", fd), error).string());
  return int(::syscall(SYS_fsync, fd));
}
