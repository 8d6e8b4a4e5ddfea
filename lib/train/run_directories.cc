#include "lib/train/run_directories.h"

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
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string_view>
#include <thread>

#include "lib/base/deadline.h"
#include "lib/base/error.h"
#include "lib/base/host_name.h"
#include "lib/base/log.h"
#include "lib/base/text/joined.h"
#include "lib/ckpt/file.h"
#include "lib/ckpt/format.h"
#include "lib/ckpt/native/checkpoint.h"
#include "lib/ckpt/native/writer.h"
#include "lib/config/load.h"

namespace gxp {
namespace {

namespace fs = std::filesystem;

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

// With this every line of metrics begins; see metrics.h.
constexpr std::string_view kLineStart = R"({"step":)";

// Whether the file holds lines that a run has written. Pipes and devices keep none.
bool holds_metrics(const std::string& path) {
  std::error_code error;
  if (!fs::is_regular_file(path, error)) return false;
  std::array<char, kLineStart.size()> bytes{};
  std::ifstream file(path, std::ios::binary);
  file.read(bytes.data(), bytes.size());
  const std::string_view start(bytes.data(), size_t(file.gcount()));
  if (start.empty()) return false;
  const int digit = file.peek();  // of a whole start; a full disk may have cut it
  if (!kLineStart.starts_with(start) || (digit != EOF && (digit < '0' || digit > '9')))
    fail(ErrorKind::kConfig,
         "write metrics to {}: it does not hold metrics; name another file, or remove it", path);
  return true;
}

std::string describe_steps(const std::vector<uint64_t>& steps) {
  if (steps.size() == 1) return step_name(steps[0]);
  return fmt::format("{} checkpoints up to {}", steps.size(), step_name(steps.back()));
}

// What `dir`, which has no checkpoint of ours, holds instead.
std::string describe_content(const std::string& dir) {
  const std::string place = checkpoint_at(dir);
  for (const CheckpointFormat& format : kFormats) {
    if (format.recognises(place))
      return fmt::format(
          "it holds one of format {}; convert that first (gxp convert-ckpt {} DIR --to "
          "gxp)",
          format.name, dir);
  }
  return "start without --resume, or name the directory of one";
}

void check_resumable(const std::string& dir, EarlierRun request) {
  if (request != EarlierRun::kContinue || !complete_steps(dir).empty()) return;
  fail(ErrorKind::kIo, "resume from {}: no checkpoint of gxp train there; {}", dir,
       describe_content(dir));
}

// Two runs would cut each other's metrics.
void check_owner(const RunDirectories& directories) {
  const std::string path = directories.records + "/resolved.toml";
  std::error_code error;
  if (directories.checkpoints.empty() || directories.records.empty() ||
      fs::weakly_canonical(directories.records, error) ==
          fs::weakly_canonical(directories.checkpoints, error) ||
      !fs::is_regular_file(path, error))
    return;
  std::string other;
  try {
    other = load_config(path).run.checkpoint.dir;
  } catch (const Error&) {
    return;  // of another version, or no settings at all
  }
  if (other.empty() ||
      fs::weakly_canonical(other, error) == fs::weakly_canonical(directories.checkpoints, error))
    return;
  fail(ErrorKind::kConfig,
       "write into directory {}: it holds the metrics and settings of the run whose checkpoints "
       "are in {}; give this run another train.run_dir",
       directories.records, other);
}

void check_earlier_run(const RunDirectories& directories, EarlierRun request) {
  check_resumable(directories.checkpoints, request);
  check_owner(directories);
  std::vector<std::string> found, remedies = {"replace it with --overwrite"};
  const auto steps = directories.checkpoints.empty() ? std::vector<uint64_t>{}
                                                     : complete_steps(directories.checkpoints);
  if (!steps.empty()) {
    found.push_back(fmt::format("{} in {}", describe_steps(steps), directories.checkpoints));
    remedies.insert(remedies.begin(), "continue it with --resume");
  }
  for (const std::string& path : directories.metrics)
    if (holds_metrics(path)) found.push_back(path);
  if (request != EarlierRun::kRefuse || found.empty()) return;
  fail(ErrorKind::kConfig, "start at step 1: an earlier run left {}; {}, or set other directories",
       joined(found, " and "), joined(remedies, ", "));
}

constexpr const char* kJobName = ".gxp.job";

// Whether a restarted one of `jobs` has marked the directory.
bool is_marked_by(const std::string& dir, const JobNames& jobs) {
  constexpr uint64_t kMostBytes = 4096;
  const std::string path = dir + "/" + kJobName;
  struct stat status = {};
  if (jobs.empty() || ::lstat(path.c_str(), &status) != 0 || !S_ISREG(status.st_mode)) return false;
  std::istringstream mark(read_text(path, kMostBytes));
  for (std::string line; std::getline(mark, line);)
    for (const JobName& job : jobs)
      if (job.restarted && job.name == line) return true;
  return false;
}

EarlierRun own_request(const RunDirectories& directories, EarlierRun request,
                       const JobNames& jobs) {
  if (directories.checkpoints.empty() || !is_marked_by(directories.checkpoints, jobs))
    return request;
  return complete_steps(directories.checkpoints).empty() ? EarlierRun::kReplace
                                                         : EarlierRun::kContinue;
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

std::string holder_of(const std::string& directory) {
  const std::string path = directory + "/" + kLockName;
  const Fd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW));
  if (!file.valid() || try_lock(file.get(), Deadline::after(0ms)) != EWOULDBLOCK) return "";
  return read_holder(file.get());
}

void prepare_directory(const std::string& path) {
  create_directory(path);
  if (::access(path.c_str(), W_OK) != 0)
    fail(ErrorKind::kIo, "write into directory {}: {}", path, system_text(errno));
}

RunDirectories directories_of(const RunConfig& config, const std::string& metrics_path) {
  const bool own = !config.train.run_dir.empty();
  RunDirectories directories{config.checkpoint.dir,
                             own ? config.train.run_dir : config.checkpoint.dir};
  if (!directories.records.empty())
    directories.metrics.push_back(directories.records + "/metrics.jsonl");
  if (!metrics_path.empty()) directories.metrics.push_back(metrics_path);
  return directories;
}

DirectoryClaim claim_directories(const RunDirectories& directories, EarlierRun request,
                                 const JobNames& jobs) {
  // Before anything is written. But a directory that has a lock may be that of a run that has saved
  // nothing yet, and who holds it tells more than that nothing can be resumed.
  std::error_code error;
  if (request != EarlierRun::kContinue ||
      !fs::exists(fs::path(directories.checkpoints) / kLockName, error))
    check_earlier_run(directories, own_request(directories, request, jobs));
  DirectoryClaim claim;
  std::string locked;
  for (const std::string& directory : {directories.checkpoints, directories.records}) {
    if (directory.empty()) continue;
    prepare_directory(directory);
    if (!locked.empty() && fs::equivalent(directory, locked)) continue;
    claim.locks.emplace_back(directory);
    locked = directory;
  }
  claim.earlier = own_request(directories, request, jobs);
  check_earlier_run(directories, claim.earlier);  // what a run that has just ended may have left
  return claim;
}

void mark_directory(const std::string& dir, const JobNames& jobs) {
  const std::string path = dir + "/" + kJobName;
  std::string text;
  for (const JobName& job : jobs) text += job.name + "\n";
  if (!jobs.empty()) return write_text(path, text);
  if (::unlink(path.c_str()) != 0 && errno != ENOENT)
    fail(ErrorKind::kIo, "remove {}: {}", path, system_text(errno));
}

void remove_checkpoints(const std::string& dir) {
  for (const uint64_t step : complete_steps(dir)) {
    const std::string left = remove_checkpoint(dir, step);
    if (!left.empty())
      fail(ErrorKind::kIo, "remove checkpoint {}/{}: {}", dir, step_name(step), left);
  }
}

}  // namespace gxp
