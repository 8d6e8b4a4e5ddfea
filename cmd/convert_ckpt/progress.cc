#include "cmd/convert_ckpt/progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <mutex>
#include <utility>

#include "lib/base/bytes.h"
#include "lib/report/terminal_line.h"
#include "lib/train/progress.h"

namespace gxp {
namespace {

using Clock = std::chrono::steady_clock;

// Threads: any.
class ProgressLine {
 public:
  explicit ProgressLine(uint64_t total) : total_(total) {}

  void add(uint64_t bytes) {
    const std::lock_guard lock(mutex_);
    done_ = std::min(total_, done_ + bytes);  // some are read twice
    if (done_ == total_) return line_.clear();
    if (!line_.is_due()) return;
    const double seconds = std::chrono::duration<double>(Clock::now() - start_).count();
    const double rate = double(done_) / std::max(seconds, 1e-3);
    line_.show(fmt::format("converted {} of {}, {}/s, eta {}", format_bytes(done_),
                           format_bytes(total_), format_bytes(uint64_t(rate)),
                           format_duration(double(total_ - done_) / std::max(rate, 1.0))));
  }

 private:
  const uint64_t total_;
  const Clock::time_point start_ = Clock::now();
  std::mutex mutex_;  // of all below
  uint64_t done_ = 0;
  TerminalLine line_;
};

}  // namespace

NamedTensors with_progress(NamedTensors tensors) {
  if (::isatty(STDERR_FILENO) == 0) return tensors;
  uint64_t total = 0;
  for (const NamedTensor& tensor : tensors.tensors) total += tensor.info.bytes();
  const auto line = std::make_shared<ProgressLine>(total);  // owners: the readers
  for (NamedTensor& tensor : tensors.tensors)
    tensor.read = [read = std::move(tensor.read), line](uint64_t begin, Memory out) {
      read(begin, out);
      line->add(out.bytes);
    };
  return tensors;
}

}  // namespace gxp
