#include "kernels/cuda/choice_cache.h"

#include <fcntl.h>
#include <sys/file.h>

#include <cerrno>
#include <charconv>
#include <chrono>
#include <filesystem>
#include <sstream>
#include <string_view>
#include <thread>

#include "lib/base/deadline.h"
#include "lib/base/error.h"
#include "lib/base/log.h"

namespace gxp {
namespace {

// Others hold the lock while they time a choice, some tenths of a second.
constexpr std::chrono::minutes kLockPatience{5};
constexpr size_t kDigits = 16;  // of a word, all of which are written

std::string line_of(const std::string& key, const CachedChoice& choice) {
  std::string line = key + ":";
  for (const uint64_t word : choice) line += fmt::format(" {:016x}", word);
  return line + "\n";
}

std::optional<CachedChoice> words_of(std::string_view text) {
  CachedChoice choice{};
  if (text.size() != choice.size() * (1 + kDigits)) return {};
  const char* at = text.data();
  for (uint64_t& word : choice) {
    if (*at++ != ' ' || std::from_chars(at, at + kDigits, word, 16).ptr != at + kDigits) return {};
    at += kDigits;
  }
  return choice;
}

std::string read_all(int fd, const std::string& path) {
  std::string text;
  char block[4096];
  for (;;) {
    const ssize_t count = ::pread(fd, block, sizeof block, off_t(text.size()));
    if (count < 0) fail(ErrorKind::kIo, "read {}: {}", path, system_text(errno));
    if (count == 0) return text;
    text.append(block, size_t(count));
  }
}

}  // namespace

ChoiceCache::ChoiceCache(std::string path) : path_(std::move(path)) {
  std::error_code error;
  const std::filesystem::path folder = std::filesystem::path(path_).parent_path();
  std::filesystem::create_directories(folder, error);
  if (error)
    fail(ErrorKind::kIo, "create {}: {}; set another folder in train.gemm_cache", folder.string(),
         error.message());
}

// Given back when the file is closed. A process that dies gives it back too.
Fd ChoiceCache::lock() const {
  Fd file(::open(path_.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0644));
  if (!file.valid())
    fail(ErrorKind::kIo, "open {}: {}; set another folder in train.gemm_cache", path_,
         system_text(errno));
  const Deadline deadline = Deadline::after(kLockPatience);
  while (::flock(file.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK && errno != EINTR)
      fail(ErrorKind::kIo, "lock {}: {}", path_, system_text(errno));
    if (deadline.expired())
      fail(ErrorKind::kIo,
           "lock {}: another process has held it for {:g} s; end that one, or set another folder "
           "in train.gemm_cache",
           path_, deadline.seconds());
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return file;
}

std::optional<CachedChoice> ChoiceCache::find(const std::string& key) {
  if (known_.find(key) == known_.end()) read(lock().get());
  const auto found = known_.find(key);
  return found == known_.end() ? std::nullopt : std::optional(found->second);
}

std::optional<CachedChoice> ChoiceCache::choose(
    const std::string& key, const std::function<std::optional<CachedChoice>()>& time) {
  if (const auto found = known_.find(key); found != known_.end()) return found->second;
  const Fd file = lock();
  read(file.get());
  if (const auto found = known_.find(key); found != known_.end()) return found->second;
  const std::optional<CachedChoice> fastest = time();
  if (!fastest) return {};
  const std::string line = (ends_in_a_line_ ? "\n" : "") + line_of(key, *fastest);
  if (::write(file.get(), line.data(), line.size()) != ssize_t(line.size()))
    fail(ErrorKind::kIo, "write {}: {}", path_, system_text(errno));
  return known_[key] = *fastest;
}

void ChoiceCache::read(int fd) {
  const std::string text = read_all(fd, path_);
  ends_in_a_line_ = !text.empty() && text.back() != '\n';
  std::istringstream lines(text);
  int number = 0;
  for (std::string line; std::getline(lines, line);) {
    ++number;
    const size_t colon = line.rfind(": ");
    const auto choice = words_of(colon == std::string::npos ? "" : line.substr(colon + 1));
    if (choice)
      known_[line.substr(0, colon)] = *choice;
    else if (number > lines_read_)
      log_warn("skipped line {} of {}: it is broken; its entry will be timed again", number, path_);
  }
  lines_read_ = number;
}

}  // namespace gxp
