#include "lib/net/launch/job_progress.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <atomic>
#include <string>
#include <utility>

#include "lib/base/error.h"
#include "lib/base/text/read_number.h"

namespace gxp {

// Lock-free atomics work between processes. A new memfd is full of zeros.
struct JobProgress::Page {
  std::atomic<int64_t> step;
  std::atomic<int64_t> replicated;
  std::atomic<int32_t> owns_directories;
  static_assert(std::atomic<int64_t>::is_always_lock_free &&
                std::atomic<int32_t>::is_always_lock_free);
};

namespace {

constexpr const char* kAct = "share the job's progress with its launcher";

}  // namespace

JobProgress::JobProgress()
    : JobProgress(Fd(int(check_sys(memfd_create("gxp progress", MFD_CLOEXEC), kAct)))) {}

JobProgress::JobProgress(Fd fd) : fd_(std::move(fd)) {
  check_sys(::ftruncate(fd_.get(), sizeof(Page)), kAct);
  void* const memory =
      ::mmap(nullptr, sizeof(Page), PROT_READ | PROT_WRITE, MAP_SHARED, fd_.get(), 0);
  check_sys(memory == MAP_FAILED ? -1 : 0, kAct);
  page_ = static_cast<Page*>(memory);
}

std::optional<JobProgress> JobProgress::inherited(const Environment& environment) {
  const std::string* text = find_variable(environment, kProgressFdVariable);
  if (text == nullptr) return std::nullopt;
  const int fd = read_number<int>(*text).value_or(-1);
  struct stat status = {};
  const bool is_page = fd >= 0 && ::fstat(fd, &status) == 0 && S_ISREG(status.st_mode) &&
                       status.st_size == off_t(sizeof(Page));
  if (!is_page)
    fail(ErrorKind::kConfig, "{}: {}='{}' is not the launcher's memory", kAct, kProgressFdVariable,
         *text);
  check_sys(::fcntl(fd, F_SETFD, FD_CLOEXEC), kAct);
  return JobProgress(Fd(fd));
}

JobProgress::JobProgress(JobProgress&& other) noexcept
    : fd_(std::move(other.fd_)), page_(std::exchange(other.page_, nullptr)) {}

JobProgress::~JobProgress() {
  if (page_ != nullptr) ::munmap(page_, sizeof(Page));
}

int64_t JobProgress::step() const noexcept { return page_->step; }
void JobProgress::set_step(int64_t step) noexcept { page_->step = step; }
int64_t JobProgress::replicated() const noexcept { return page_->replicated; }
void JobProgress::set_replicated(int64_t step) noexcept { page_->replicated = step; }
bool JobProgress::owns_directories() const noexcept { return page_->owns_directories != 0; }
void JobProgress::set_owns_directories() noexcept { page_->owns_directories = 1; }

}  // namespace gxp
