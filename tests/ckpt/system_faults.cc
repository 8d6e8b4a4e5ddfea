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
bool lose_directory = false;
std::vector<std::string> synced;

std::string path_of(int fd) {
  std::error_code error;
  return std::filesystem::read_symlink(fmt::format("/proc/self/fd/{}", fd), error).string();
}

}  // namespace

NoExchange::NoExchange() { exchanges = false; }
NoExchange::~NoExchange() { exchanges = true; }

void die_at_rename(int count) { renames_to_live = count; }

void lose_directory_at_unlink() { lose_directory = true; }

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

extern "C" int unlinkat(int directory, const char* name, int flags) noexcept {
  if (std::exchange(gxp::lose_directory, false)) ::rmdir(gxp::path_of(directory).c_str());
  return int(::syscall(SYS_unlinkat, directory, name, flags));
}

extern "C" int fsync(int fd) {
  gxp::synced.push_back(gxp::path_of(fd));
  return int(::syscall(SYS_fsync, fd));
}
