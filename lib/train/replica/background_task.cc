#include "lib/train/replica/background_task.h"

#include <pthread.h>

#include <ctime>
#include <utility>

#include "lib/base/error.h"
#include "lib/base/log.h"
#include "lib/base/thread.h"

namespace gxp {
namespace {

constexpr std::chrono::milliseconds kMoment{20};
// A run that ends does not wait longer for a write that is under way.
constexpr std::chrono::seconds kEndPatience{5};
// comm.timeout_s: 10 minutes unless set. fsync() of a large file on a slow disk takes minutes.
constexpr double kTimeoutsOfACall = 10;

}  // namespace

BackgroundTask::BackgroundTask(std::string act, double timeout)
    : act_(std::move(act)),
      longest_(std::chrono::duration_cast<Deadline::Duration>(
          std::chrono::duration<double>(kTimeoutsOfACall * timeout))) {}

BackgroundTask::~BackgroundTask() {
  thread_.request_stop();
  if (!done_.valid() || done_.wait_for(kEndPatience) == std::future_status::ready) return;
  log_warn("{}: abandoned, since a file system call hangs", act_);
  thread_.detach();
}

void BackgroundTask::start(int rank, Work work) {
  GXP_ASSERT(!in_flight());
  std::promise<void> promise;
  done_ = promise.get_future();
  used_ = std::chrono::nanoseconds(-1);
  thread_ = start_thread("to " + act_, [rank, work = std::move(work), done = std::move(promise)](
                                           const std::stop_token& stop) mutable {
    set_log_rank(rank);
    try {
      work(stop);
      done.set_value();
    } catch (...) {
      done.set_exception(std::current_exception());
    }
  });
}

void BackgroundTask::check() {
  if (done_.valid() && done_.wait_for(std::chrono::seconds(0)) == std::future_status::ready)
    done_.get();
}

void BackgroundTask::wait_a_moment() {
  if (!done_.valid()) return std::this_thread::sleep_for(kMoment);
  done_.wait_for(kMoment);
  check();
  if (const auto used = time_of_thread(); used != used_) {
    used_ = used;
    stuck_ = Deadline::after(longest_);
  }
  if (done_.valid() && stuck_.expired())
    fail(ErrorKind::kIo,
         "{}: a file system call did not return within {:g} s; does the disk or its server hang?",
         act_, stuck_.seconds());
}

// The CPU time of the thread: it grows while the work goes on, and stands still in a call that
// hangs.
std::chrono::nanoseconds BackgroundTask::time_of_thread() {
  clockid_t clock{};
  timespec time{};
  if (done_.valid() && pthread_getcpuclockid(thread_.native_handle(), &clock) == 0)
    clock_gettime(clock, &time);
  return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
}

}  // namespace gxp
