#include "tests/ckpt/system_faults.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <utility>

namespace gxp {
namespace {

bool exchanges = true;
bool links = true;
int renames_to_live = -1;  // -1: for ever
bool lose_directory = false;
bool lose_file = false;
bool short_writes = false;

struct {
  std::string directory;
  int cause = 0;
  int calls_to_go = -1;  // -1: none fails
} disk;
std::vector<std::string> synced;

std::string path_of(int fd) {
  std::error_code error;
  return std::filesystem::read_symlink(fmt::format("/proc/self/fd/{}", fd), error).string();
}

// Whether this call fails; errno tells why.
bool fails(const std::string& path) {
  if (disk.calls_to_go < 0 || !path.starts_with(disk.directory) || disk.calls_to_go-- > 0)
    return false;
  errno = disk.cause;
  return true;
}

void maybe_die() {
  if (renames_to_live == 0) ::_exit(kDiedAtRename);
  if (renames_to_live > 0) --renames_to_live;
}

}  // namespace

FailingDisk::FailingDisk(std::string directory, int cause, int call) {
  disk = {std::move(directory), cause, call};
}
FailingDisk::~FailingDisk() { disk = {}; }
bool FailingDisk::has_failed() const { return disk.calls_to_go < 0; }

ShortWrites::ShortWrites() { short_writes = true; }
ShortWrites::~ShortWrites() { short_writes = false; }

NoExchange::NoExchange() { exchanges = false; }
NoExchange::~NoExchange() { exchanges = true; }

NoLinks::NoLinks() { links = false; }
NoLinks::~NoLinks() { links = true; }

void die_at_rename(int count) { renames_to_live = count; }

void lose_directory_at_unlink() { lose_directory = true; }

void lose_file_at_rename() { lose_file = true; }

std::vector<std::string> take_synced() { return std::exchange(synced, {}); }

}  // namespace gxp

extern "C" int renameat2(int from_directory, const char* from, int to_directory, const char* to,
                         unsigned flags) noexcept {
  if ((flags & RENAME_EXCHANGE) != 0 && !gxp::exchanges) {
    errno = EINVAL;
    return -1;
  }
  if (gxp::fails(to)) return -1;
  return int(::syscall(SYS_renameat2, from_directory, from, to_directory, to, flags));
}

extern "C" int rename(const char* from, const char* to) noexcept {
  gxp::maybe_die();
  if (gxp::fails(to)) return -1;
  return int(::syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 0));
}

extern "C" int renameat(int from_directory, const char* from, int to_directory,
                        const char* to) noexcept {
  gxp::maybe_die();
  if (std::exchange(gxp::lose_file, false)) ::unlinkat(from_directory, from, 0);
  if (gxp::fails(gxp::path_of(to_directory))) return -1;
  return int(::syscall(SYS_renameat2, from_directory, from, to_directory, to, 0));
}

extern "C" int linkat(int from_directory, const char* from, int to_directory, const char* to,
                      int flags) noexcept {
  if (!gxp::links) {
    errno = EPERM;
    return -1;
  }
  if (gxp::fails(gxp::path_of(to_directory))) return -1;
  return int(::syscall(SYS_linkat, from_directory, from, to_directory, to, flags));
}

extern "C" int unlinkat(int directory, const char* name, int flags) noexcept {
  if (std::exchange(gxp::lose_directory, false)) ::rmdir(gxp::path_of(directory).c_str());
  return int(::syscall(SYS_unlinkat, directory, name, flags));
}

extern "C" ssize_t write(int fd, const void* data, size_t bytes) {
  if (gxp::disk.calls_to_go >= 0 && gxp::fails(gxp::path_of(fd))) return -1;
  if (gxp::short_writes) bytes = std::min<size_t>(bytes, 3);
  return ssize_t(::syscall(SYS_write, fd, data, bytes));
}

extern "C" int fsync(int fd) {
  if (gxp::fails(gxp::path_of(fd))) return -1;
  gxp::synced.push_back(gxp::path_of(fd));
  return int(::syscall(SYS_fsync, fd));
}
