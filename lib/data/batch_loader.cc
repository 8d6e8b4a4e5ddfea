#include "lib/data/batch_loader.h"

#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <span>
#include <string>

#include "lib/base/error.h"
#include "lib/base/log.h"
#include "lib/base/thread.h"

namespace gxp {
namespace {

constexpr std::chrono::seconds kEndPatience{10};

}  // namespace

BatchLoader::BatchLoader(const Dataset& dataset, const DataOrder& order, const BatchShare& share,
                         int depth)
    : dataset_(dataset),
      order_(order),
      share_(share),
      keeps_apart_(share.documents && dataset.has_documents()) {
  GXP_ASSERT(depth > 0 && share.rows > 0 && share.rank >= 0 && share.rank < share.world_size);
  const std::vector<int32_t> samples(size_t(share.rows) * (size_t(dataset.sequence()) + 1));
  const auto begins = share.documents ? samples : std::vector<int32_t>();
  slots_.assign(size_t(depth), Slot{samples, samples, begins});
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
  base_ = position;
  thread_ = start_thread("gxp-loader", [this](const std::stop_token& stop) {
    read_ahead(stop);
    const std::lock_guard lock(mutex_);
    runs_ = false;
    changed_.notify_all();
  });
  pthread_setname_np(thread_.native_handle(), "gxp-loader");
}

void BatchLoader::read_ahead(const std::stop_token& stop) {
  const auto rows = uint64_t(share_.rows);
  const auto per_step = uint64_t(share_.per_step);
  const uint64_t step_samples = uint64_t(share_.world_size) * rows * per_step;  // of all ranks
  uint64_t step_targets = 0;
  std::unique_lock lock(mutex_);
  const auto has_room = [this] { return written_ - taken_ < slots_.size(); };
  while (changed_.wait(lock, stop, has_room) && !stop.stop_requested()) {
    Slot& slot = slots_[written_ % slots_.size()];
    const uint64_t position = position_of(written_);
    lock.unlock();
    std::exception_ptr error;
    try {
      if (per_step > 0 && written_ % per_step == 0)
        step_targets = count_targets(base_ + written_ / per_step * step_samples, step_samples);
      slot.step_targets = step_targets;
      read_samples(slot, position);
    } catch (...) {
      error = std::current_exception();
    }
    lock.lock();
    error_ = error;
    if (!error) ++written_;
    changed_.notify_all();
    if (error) return;
  }
}

void BatchLoader::read_samples(Slot& slot, uint64_t position) const {
  const size_t length = size_t(dataset_.sequence()) + 1;
  for (size_t row = 0; row < size_t(share_.rows); ++row) {
    const auto own = [&](std::vector<int32_t>& all) {
      return std::span(all).subspan(row * length, length);
    };
    const uint64_t sample = order_.at(position + row);
    if (keeps_apart_)
      read_documents(sample, own(slot.tokens), own(slot.labels), own(slot.begins));
    else
      dataset_.read(sample, own(slot.tokens), own(slot.labels));
  }
}

// The first token of a document gets no label: nothing of its document is before it.
void BatchLoader::read_documents(uint64_t sample, Elements tokens, Elements labels,
                                 Elements begins) const {
  dataset_.read(sample, tokens, labels);
  dataset_.read_document_begins(sample, begins);
  GXP_ASSERT(begins[0] == 0);
  for (size_t i = 1; i < begins.size(); ++i) {
    const bool is_first = begins[i] == int32_t(i);
    GXP_ASSERT(is_first || begins[i] == begins[i - 1]);
    if (is_first) labels[i] = kNoLabel;
  }
}

uint64_t BatchLoader::count_targets(uint64_t begin, uint64_t samples) const {
  uint64_t targets = 0;
  if (!keeps_apart_) {
    for (uint64_t i = 0; i < samples; ++i) targets += dataset_.count_targets(order_.at(begin + i));
    return targets;
  }
  std::vector<int32_t> tokens(size_t(dataset_.sequence()) + 1), labels = tokens, begins = tokens;
  for (uint64_t i = 0; i < samples; ++i) {
    read_documents(order_.at(begin + i), tokens, labels, begins);
    targets += uint64_t(std::count_if(labels.begin() + 1, labels.end(),
                                      [](int32_t label) { return label != kNoLabel; }));
  }
  return targets;
}

uint64_t BatchLoader::next(const BatchTensors& batch, Deadline deadline) {
  GXP_ASSERT(thread_.joinable());
  const auto sequence = size_t(dataset_.sequence());
  const size_t count = size_t(share_.rows) * sequence;
  const bool has_begins = batch.document_begin.memory.data != nullptr;
  GXP_ASSERT(has_begins == share_.documents);
  std::unique_lock lock(mutex_);
  const auto ready = [this] { return taken_ < written_ || error_; };
  if (!deadline.wait(changed_, lock, ready))
    fail(ErrorKind::kIo, "wait for the next micro-batch: no data after {:g} s", deadline.seconds());
  if (taken_ == written_) std::rethrow_exception(error_);
  const Slot& slot = slots_[taken_ % slots_.size()];
  lock.unlock();
  const auto copy = [&](const Tensor& to, const std::vector<int32_t>& from, size_t shift) {
    GXP_ASSERT(to.count() == count);
    for (size_t at = 0, first = shift; at < count; at += sequence, first += sequence + 1)
      std::copy_n(from.data() + first, sequence, to.data<int32_t>() + at);
  };
  copy(batch.tokens, slot.tokens, 0);
  copy(batch.targets, slot.labels, 1);
  if (has_begins) copy(batch.document_begin, slot.begins, 0);
  step_targets_ = slot.step_targets;
  lock.lock();
  const uint64_t position = position_of(taken_++);
  changed_.notify_all();
  return position;
}

uint64_t BatchLoader::position_of(uint64_t batch) const {
  const auto in_a_row = uint64_t(share_.in_a_row);
  const uint64_t turn = batch / in_a_row * uint64_t(share_.world_size) + uint64_t(share_.rank);
  return base_ + (turn * in_a_row + batch % in_a_row) * uint64_t(share_.rows);
}

}  // namespace gxp
