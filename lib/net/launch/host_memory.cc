#include "lib/net/launch/host_memory.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "lib/base/error.h"

namespace gxp {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kBegin = "gxp-replica-";
constexpr int kMostTries = 20;

// The directory's own lock; invalid: another process holds it, or it is not this user's.
Fd lock_directory(const std::string& path) {
  Fd directory(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  struct stat status {};
  const bool is_ours = directory.valid() && ::fstat(directory.get(), &status) == 0 &&
                       status.st_uid == ::geteuid() &&
                       ::flock(directory.get(), LOCK_EX | LOCK_NB) == 0;
  return is_ours ? std::move(directory) : Fd();
}

// Of launchers that were killed.
void remove_left(const std::string& dir) {
  std::error_code none;
  for (const auto& entry : fs::directory_iterator(dir, none)) {
    if (!entry.path().filename().string().starts_with(kBegin)) continue;
    if (const Fd lock = lock_directory(entry.path()); lock.valid())
      fs::remove_all(entry.path(), none);
  }
}

}  // namespace

HostMemory::HostMemory(const std::string& dir) {
  remove_left(dir);
  const std::string pattern = fmt::format("{}/{}XXXXXX", dir, kBegin);
  const std::string act =
      fmt::format("make a directory for replicas in {} (checkpoint.replica_dir)", dir);
  // Other launchers that start at this moment may remove the directory before it is locked.
  for (int tries = 0; tries < kMostTries; ++tries) {
    path_ = pattern;
    check_sys(::mkdtemp(path_.data()) == nullptr ? -1 : 0, act);
    lock_ = lock_directory(path_);
    if (lock_.valid() && fs::exists(path_)) return;
    std::error_code none;
    fs::remove(path_, none);
  }
  fail(ErrorKind::kIo,
       "{}: {} belongs to another user than this process, or cannot be locked; choose a directory "
       "in this host's memory, as /dev/shm",
       act, path_);
}

HostMemory::~HostMemory() {
  std::error_code none;
  fs::remove_all(path_, none);
}

}  // namespace gxp
