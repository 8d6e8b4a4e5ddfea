#include "lib/data/corpus/file_record.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <ctime>
#include <utility>

#include "lib/base/error.h"
#include "lib/base/log.h"

namespace gxp {
namespace {

constexpr time_t kCoarsestClockStep = 2;  // seconds: FAT's

}  // namespace

std::string file_stamp(const std::string& path) {
  struct stat status = {};
  check_sys(::stat(path.c_str(), &status), fmt::format("read the times of {}", path));
  if (status.st_ctim.tv_sec + kCoarsestClockStep >= ::time(nullptr)) return "";
  return fmt::format("{}:{}:{}:{}.{}:{}.{}", status.st_dev, status.st_ino, status.st_size,
                     status.st_mtim.tv_sec, status.st_mtim.tv_nsec, status.st_ctim.tv_sec,
                     status.st_ctim.tv_nsec);
}

FileRecord::FileRecord(std::string path, std::string_view act)
    : path_(std::move(path)), fd_(::open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600)) {
  if (fd_.get() < 0) fail(ErrorKind::kIo, "open {}: {}", path_, system_text(errno));
  if (::flock(fd_.get(), LOCK_EX | LOCK_NB) == 0) return;
  if (errno == EWOULDBLOCK) log_info("data: another process {}; waiting for it", act);
  while (::flock(fd_.get(), LOCK_EX) != 0) {  // ends: the lock goes with its holder
    if (errno == EINTR) continue;
    log_warn("lock {}: {}; several processes may do at a time what one does: {}", path_,
             system_text(errno), act);
    return;
  }
}

std::string FileRecord::find(std::string_view stamp) const {
  std::array<char, 512> bytes = {};
  const ssize_t got = ::pread(fd_.get(), bytes.data(), bytes.size(), 0);
  const std::string_view line(bytes.data(), size_t(got < 0 ? 0 : got));
  const bool is_of_it = !stamp.empty() && line.starts_with(stamp) && line.ends_with('\n') &&
                        line.size() > stamp.size() + 1 && line[stamp.size()] == ' ';
  if (!is_of_it) return "";
  return std::string(line.substr(stamp.size() + 1, line.size() - stamp.size() - 2));
}

void FileRecord::note(std::string_view stamp, std::string_view text) {
  if (stamp.empty()) return;
  const std::string line = fmt::format("{} {}\n", stamp, text);
  if (::ftruncate(fd_.get(), 0) != 0 ||
      ::pwrite(fd_.get(), line.data(), line.size(), 0) != ssize_t(line.size()))
    log_warn("write {}: {}", path_, system_text(errno));
}

}  // namespace gxp
