// How far a job has come, in memory that rank 0 shares with the launcher of its host. It outlives
// the ranks, so that the launcher can tell where they failed.
#pragma once

#include <cstdint>
#include <optional>

#include "lib/base/environment.h"
#include "lib/base/fd.h"

namespace gxp {

// Rank 0 inherits the memory's descriptor by this variable.
inline constexpr const char* kProgressFdVariable = "GXP_PROGRESS_FD";

// Threads: any. One writer at a time.
class JobProgress {
 public:
  // The launcher's. kIo.
  JobProgress();
  // Rank 0's; nothing on other ranks, or if the launcher has none. kConfig if the variable names
  // something else. Call once.
  static std::optional<JobProgress> inherited(const Environment& environment);
  JobProgress(JobProgress&& other) noexcept;
  JobProgress& operator=(JobProgress&&) = delete;
  ~JobProgress();

  [[nodiscard]] int fd() const { return fd_.get(); }

  // The step that the ranks are in, or were in last; 0: they have not begun one.
  [[nodiscard]] int64_t step() const noexcept;
  void set_step(int64_t step) noexcept;
  // The step of the newest replica that all hosts have; 0: there is none.
  [[nodiscard]] int64_t replicated() const noexcept;
  void set_replicated(int64_t step) noexcept;
  // Whether the run's directories hold nothing but what this job has written or continues from.
  [[nodiscard]] bool owns_directories() const noexcept;
  void set_owns_directories() noexcept;

 private:
  struct Page;
  explicit JobProgress(Fd fd);

  Fd fd_;
  Page* page_ = nullptr;
};

}  // namespace gxp
