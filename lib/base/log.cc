#include "lib/base/log.h"

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <climits>
#include <condition_variable>
#include <mutex>
#include <thread>

#include "lib/base/log_queue.h"
#include "lib/base/text/visible_text.h"
#include "lib/base/thread.h"

namespace gxp {
namespace {

// The log is the one piece of global state: a sink that every layer may use, like stderr itself.
std::atomic<LogLevel> log_level{LogLevel::kInfo};
thread_local int thread_rank = -1;

constexpr std::array<std::string_view, 3> kLevelWords = {"", "warn ", "error "};

// A log that cannot be written has nowhere to complain: false.
bool write_all(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t count = ::write(fd, text.data(), text.size());
    if (count < 0 && errno != EINTR) return false;
    text.remove_prefix(size_t(std::max<ssize_t>(count, 0)));
  }
  return true;
}

}  // namespace

struct LogQueue::Impl {
  explicit Impl(int the_fd) : fd(the_fd) {}

  void add(std::string_view line) {
    {
      const std::lock_guard lock(mutex);
      if (text.size() + line.size() > kMostBytes) {
        ++dropped;
        return;
      }
      note_dropped();
      text += line;
    }
    arrived.notify_one();
  }

  // Under the mutex.
  void note_dropped() {
    if (dropped > 0)
      text += log_line(
          LogLevel::kWarn,
          fmt::format("log: {} lines were dropped here, since their reader was too slow", dropped));
    dropped = 0;
  }

  void serve(const std::stop_token& stop) {
    std::unique_lock lock(mutex);
    while (arrived.wait(lock, stop, [this] { return !text.empty(); }) && !stop.stop_requested()) {
      // At most what a ready pipe takes without waiting, so that the end need not wait either.
      const std::string piece = text.substr(0, PIPE_BUF);
      lock.unlock();
      constexpr int kLookMs = 50;  // for the end
      pollfd entry{fd, POLLOUT, 0};
      const bool ready = ::poll(&entry, 1, kLookMs) > 0;
      const bool lost = ready && !write_all(fd, piece);
      lock.lock();
      if (lost) text.clear();
      if (ready && !lost) text.erase(0, piece.size());
      if (ready && text.size() < kMostBytes / 2) note_dropped();
    }
  }

  const int fd;
  std::mutex mutex;  // guards the next two
  std::string text;
  size_t dropped = 0;  // lines
  std::condition_variable_any arrived;
  std::jthread thread;  // last: it uses everything above
};

namespace {

std::mutex queue_mutex;                  // guards the next
LogQueue::Impl* active_queue = nullptr;  // null: lines are written at once

// Whether a queue has taken it.
bool enqueue(std::string_view line) {
  const std::lock_guard lock(queue_mutex);
  if (active_queue != nullptr) active_queue->add(line);
  return active_queue != nullptr;
}

void use_queue(LogQueue::Impl* queue) {
  const std::lock_guard lock(queue_mutex);
  active_queue = queue;
}

}  // namespace

LogQueue::LogQueue(int fd) : impl_(std::make_unique<Impl>(fd)) {
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);  // the thread takes no signals
  impl_->thread = start_thread("gxp-log", [impl = impl_.get()](const std::stop_token& stop) {
    pthread_setname_np(pthread_self(), "gxp-log");
    impl->serve(stop);
  });
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  use_queue(impl_.get());
}

LogQueue::~LogQueue() {
  use_queue(nullptr);
  impl_->thread = {};  // ends and joins it
  impl_->note_dropped();
  write_all(impl_->fd, impl_->text);
}

void set_log_rank(int rank) { thread_rank = rank; }
int log_rank() { return thread_rank; }
void set_log_level(LogLevel level) { log_level = level; }

std::string log_line(LogLevel level, std::string_view message) {
  const std::string origin = thread_rank < 0 ? "gxp" : fmt::format("gxp[rank {}]", thread_rank);
  return fmt::format("{} {}{}\n", origin, kLevelWords[size_t(level)], visible(message));
}

void write_log(LogLevel level, std::string_view message) {
  if (level < log_level.load()) return;
  const std::string line = log_line(level, message);
  if (enqueue(line)) return;
  [[maybe_unused]] const auto written = ::write(STDERR_FILENO, line.data(), line.size());
}

void write_formatted_log(LogLevel level, fmt::string_view format, fmt::format_args args) {
  write_log(level, fmt::vformat(format, args));
}

}  // namespace gxp
