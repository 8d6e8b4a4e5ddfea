#include "lib/data/batch_loader.h"

#include <pthread.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <string>

#include "lib/base/error.h"
#include "lib/base/log.h"
#include "lib/base/thread.h"

namespace gxp {
namespace {

constexpr std::chrono::seconds kEndPatience{10};

}  // namespace

BatchLoader::BatchLoader(const Dataset& dataset, const SampleOrder& order, const BatchShare& share,
                         int depth)
    : dataset_(dataset), order_(order), share_(share) {
  GXP_ASSERT(depth > 0 && share.rows > 0 && share.rank >= 0 && share.rank < share.world_size);
  slots_.assign(size_t(depth), Slot(2 * size_t(share.rows) * size_t(dataset.sequence())));
}

BatchLoader::~BatchLoader() { stop(); }

void BatchLoader::stop() {
  if (!thread_.joinable()) return;
  thread_.request_stop();
  std::unique_lock lock(mutex_);
  if (!Deadline::after(kEndPatience).wait(changed_, lock, [this] { return !runs_; })) {
    const std::string line = log_line(
        LogLevel::kError, "abandon a read of data that hangs; does the disk or its server hang?");
    [[maybe_unused]] const auto written = ::write(STDERR_FILENO, line.data(), line.size());
    std::_Exit(exit_code(ErrorKind::kIo));  // the thread has what would be destroyed
  }
  lock.unlock();
  thread_.join();  // ends: it is at its end
}

void BatchLoader::start(uint64_t position) {
  stop();
  written_ = taken_ = 0;  // no lock: no other thread runs
  error_ = nullptr;
  runs_ = true;
  thread_ = start_thread("gxp-loader", [this, position](const std::stop_token& stop) {
    read_ahead(stop, position);
    const std::lock_guard lock(mutex_);
    runs_ = false;
    changed_.notify_all();
  });
  pthread_setname_np(thread_.native_handle(), "gxp-loader");
}

void BatchLoader::read_ahead(const std::stop_token& stop, uint64_t position) {
  const auto rows = uint64_t(share_.rows);
  const auto in_a_row = uint64_t(share_.in_a_row);
  const uint64_t others = uint64_t(share_.world_size - 1) * in_a_row * rows;
  position += uint64_t(share_.rank) * in_a_row * rows;
  std::unique_lock lock(mutex_);
  const auto has_room = [this] { return written_ - taken_ < slots_.size(); };
  while (changed_.wait(lock, stop, has_room) && !stop.stop_requested()) {
    Slot& slot = slots_[written_ % slots_.size()];
    lock.unlock();
    std::exception_ptr error;
    try {
      read(position, slot);
    } catch (...) {
      error = std::current_exception();
    }
    position += rows;
    lock.lock();
    error_ = error;
    if (!error) ++written_;
    if (written_ % in_a_row == 0) position += others;
    changed_.notify_all();
    if (error) return;
  }
}

void BatchLoader::read(uint64_t position, Slot& slot) const {
  const auto sequence = size_t(dataset_.sequence());
  int32_t* tokens = slot.data();
  int32_t* targets = slot.data() + slot.size() / 2;
  for (int row = 0; row < share_.rows; ++row) {
    dataset_.read(order_.at(position + uint64_t(row)), tokens, targets);
    tokens += sequence;
    targets += sequence;
  }
}

void BatchLoader::next(const Tensor& tokens, const Tensor& targets, Deadline deadline) {
  GXP_ASSERT(thread_.joinable());
  const size_t bytes = slots_[0].size() / 2 * sizeof(int32_t);
  GXP_ASSERT(tokens.memory.bytes == bytes && targets.memory.bytes == bytes);
  std::unique_lock lock(mutex_);
  const auto ready = [this] { return taken_ < written_ || error_; };
  if (!deadline.wait(changed_, lock, ready))
    fail(ErrorKind::kIo, "wait for the next micro-batch: no data after {:g} s", deadline.seconds());
  if (taken_ == written_) std::rethrow_exception(error_);
  const Slot& slot = slots_[taken_ % slots_.size()];
  lock.unlock();
  std::memcpy(tokens.data<int32_t>(), slot.data(), bytes);
  std::memcpy(targets.data<int32_t>(), slot.data() + slot.size() / 2, bytes);
  lock.lock();
  ++taken_;
  changed_.notify_all();
}

}  // namespace gxp
