#include "lib/train/directory_lock.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <thread>

#include "lib/base/deadline.h"
#include "lib/base/error.h"
#include "lib/base/host_name.h"
#include "lib/base/log.h"

namespace gxp {
namespace {

using namespace std::chrono_literals;

constexpr auto kPause = 20ms;  // between two tries
constexpr size_t kMostHolderBytes = 256;

// 0, or errno of the last try.
int try_lock(int fd, Deadline deadline) {
  while (::flock(fd, LOCK_EX | LOCK_NB) != 0) {
    if (errno == EINTR) continue;
    if (errno != EWOULDBLOCK || deadline.expired()) return errno;
    std::this_thread::sleep_for(kPause);
  }
  return 0;
}

// The holder's text without control characters.
std::string read_holder(int fd) {
  std::array<char, kMostHolderBytes> bytes{};
  const ssize_t count = ::pread(fd, bytes.data(), bytes.size(), 0);
  std::string holder(bytes.data(), size_t(std::max<ssize_t>(count, 0)));
  holder.resize(std::min(holder.find('\n'), holder.size()));
  std::ranges::replace_if(
      holder, [](char c) { return c < ' ' || c > '~'; }, '?');
  return holder.empty() ? "an unnamed process" : holder;
}

// Whether a process of this host is named that has ended.
bool has_ended(const std::string& holder) {
  int process = 0;
  std::array<char, kMostHolderBytes> host{};
  return std::sscanf(holder.c_str(), "process %d on host %255s", &process, host.data()) == 2 &&
         host_name() == host.data() && process > 0 && ::kill(process, 0) != 0 && errno == ESRCH;
}

// Who holds the lock, for messages.
std::string describe_holder(int fd, const std::string& path) {
  const std::string holder = read_holder(fd);
  if (has_ended(holder))
    return fmt::format("another process holds its lock {}; {}, named there, has ended", path,
                       holder);
  return fmt::format("another run is using it, {} according to {}", holder, path);
}

void write_holder(int fd, const std::string& path) {
  const std::string text = fmt::format("process {} on host {}\n", ::getpid(), host_name());
  const bool written =
      ::ftruncate(fd, 0) == 0 && ::pwrite(fd, text.data(), text.size(), 0) == ssize_t(text.size());
  if (!written) fail(ErrorKind::kIo, "write {}: {}", path, system_text(errno));
}

Fd open_lock(const std::string& path) {
  const int flags = O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK;
  const std::string act = fmt::format("lock {}", path);
  Fd fd(int(check_sys(::open(path.c_str(), flags, 0666), act)));
  struct stat status = {};
  check_sys(::fstat(fd.get(), &status), act);
  if (!S_ISREG(status.st_mode)) fail(ErrorKind::kIo, "{}: not a regular file", act);
  const mode_t writers = status.st_mode & 0222;
  const mode_t mode = writers | writers << 1;
  if (status.st_uid == ::geteuid() && (status.st_mode & 0777) != mode)
    (void)::fchmod(fd.get(), mode);
  return fd;
}

}  // namespace

DirectoryLock::DirectoryLock(const std::string& directory, std::chrono::milliseconds patience)
    : directory_(directory) {
  const std::string path = directory + "/" + kLockName;
  Fd fd = open_lock(path);
  const int error = try_lock(fd.get(), Deadline::after(patience));
  if (error == EWOULDBLOCK)
    fail(ErrorKind::kIo,
         "use directory {}: {}; wait for its end, or set another checkpoint.dir or train.run_dir",
         directory, describe_holder(fd.get(), path));
  if (error != 0) {
    log_warn("directory {} cannot be locked ({}), so another run is not kept out of it", directory,
             system_text(error));
    return;
  }
  write_holder(fd.get(), path);
  fd_ = std::move(fd);
}

void DirectoryLock::keep() {
  if (!fd_.valid()) return;
  const std::string path = directory_ + "/" + kLockName;
  struct stat held = {}, named = {};
  check_sys(::fstat(fd_.get(), &held), "look at the lock " + path);
  const bool there = ::lstat(path.c_str(), &named) == 0;
  if (there && held.st_dev == named.st_dev && held.st_ino == named.st_ino) return;
  if (!there && ::access(directory_.c_str(), F_OK) != 0) return;
  log_warn("{} was removed or replaced while this run held it; locking it again", path);
  *this = DirectoryLock(directory_, 0ms);
}

}  // namespace gxp
