#include "lib/train/background_save.h"

#include <algorithm>
#include <array>
#include <random>
#include <utility>

#include "lib/base/log.h"
#include "lib/ckpt/native/export_directory.h"
#include "lib/ckpt/native/part_files.h"
#include "lib/ckpt/native/step_directory.h"
#include "lib/ckpt/native/writer.h"
#include "lib/collective/gather_texts.h"

namespace gxp {
namespace {

// Elements that are written between two looks at whether the run has ended.
constexpr size_t kWrittenElements = size_t{4} << 20;
constexpr std::chrono::milliseconds kLookEvery{20};

// [collective] Rank 0's, on every rank.
std::string make_save_id(Communicator& communicator) {
  std::random_device random;
  const std::string mine = fmt::format("{:08x}{:08x}", random(), random());
  return gather_texts(communicator, mine).front();
}

// The shares of one file. False if the run has ended before all was written.
bool write_all(const StagedState& staged, bool frozen, const std::stop_token& stop,
               CheckpointWriter& writer) {
  ConstMemory left = memory_of(staged.values);
  for (const StagedState::Share& share : staged.shares) {
    const size_t share_bytes = share.count * sizeof(float);
    const ConstMemory values = left.slice(0, share_bytes);
    left = left.slice(share_bytes, left.bytes - share_bytes);
    for (size_t done = 0; share.frozen == frozen && done < share.count; done += kWrittenElements) {
      if (stop.stop_requested()) return false;
      const size_t count = std::min(kWrittenElements, share.count - done);
      writer.add(share.tensor, share.begin + done,
                 values.slice(done * sizeof(float), count * sizeof(float)));
    }
  }
  return true;
}

StorageDType parse_export_type(std::string_view setting) {
  if (setting == "fp32") return StorageDType::kF32;
  return setting == "fp16" ? StorageDType::kF16 : StorageDType::kBF16;
}

}  // namespace

void BackgroundSave::launch(Work work) {
  std::promise<void> promise;
  done_ = promise.get_future();
  thread_ = std::jthread([rank = communicator_.rank(), work = std::move(work),
                          done = std::move(promise)](const std::stop_token& stop) mutable {
    set_log_rank(rank);
    try {
      work(stop);
      done.set_value();
    } catch (...) {
      done.set_exception(std::current_exception());
    }
  });
}

void BackgroundSave::start(Trainer& trainer) {
  const auto begin = Deadline::Clock::now();
  finish();
  files_ = files_of_a_rank(trainer.architecture());
  names_ = names_of(trainer.architecture());
  stage_state(trainer, checkpoint_info(trainer, communicator_.world_size(), config_, settings_),
              staged_);
  const std::string save_id = make_save_id(communicator_);
  launch([this, save_id, stall = seconds_since(begin)](const std::stop_token& stop) {
    write(stop, save_id, stall);
  });
}

void BackgroundSave::start_export(uint64_t step) {
  GXP_ASSERT(!done_.valid());
  if (communicator_.rank() != 0 || config_.checkpoint.export_type == "none") return;
  launch([this, step](const std::stop_token& stop) { export_step(stop, step); });
}

void BackgroundSave::write(const std::stop_token& stop, const std::string& save_id, double stall) {
  const auto begin = Deadline::Clock::now();
  const CheckpointInfo& info = staged_.info;
  const std::string& dir = config_.checkpoint.dir;
  WriterRank rank{info.step, communicator_.rank(), info.world_size};
  for (const bool frozen : files_) {
    rank.frozen = frozen;
    CheckpointWriter writer(dir, rank);
    if (!write_all(staged_, frozen, stop, writer)) return;
    leave_part(dir, rank, save_id, writer.finish());
  }
  if (rank.rank != 0) return;
  const std::string path = publish(stop, save_id);
  if (path.empty()) return;
  log_info("saved {}; training waited {:.0f} ms, writing took {:.2f} s", path, stall * 1e3,
           seconds_since(begin));
  if (config_.checkpoint.export_type != "none") export_step(stop, info.step);
}

std::string BackgroundSave::publish(const std::stop_token& stop, const std::string& save_id) {
  const CheckpointInfo& info = staged_.info;
  const std::string& dir = config_.checkpoint.dir;
  const auto timeout = std::chrono::duration_cast<Deadline::Duration>(
      std::chrono::duration<double>(config_.comm.timeout_s));
  std::vector<FilePart> parts;
  for (const bool frozen : files_) {
    const WriterRank rank{info.step, 0, info.world_size, frozen};
    const auto found = await_parts(dir, rank, save_id, stop, Deadline::after(timeout));
    if (found.empty()) return "";
    const auto kept = lay_out(found, config_.checkpoint, rank, names_, stop);
    if (kept.empty()) return "";
    parts.insert(parts.end(), kept.begin(), kept.end());
  }
  return publish_checkpoint(dir, parts, info, retention_of(config_.checkpoint));
}

void BackgroundSave::export_step(const std::stop_token& stop, uint64_t step) {
  const auto begin = Deadline::Clock::now();
  const CheckpointConfig& checkpoint = config_.checkpoint;
  const std::string path = export_weights(
      step_path(checkpoint.dir, step),
      {.dtype = parse_export_type(checkpoint.export_type), .origin = config_.model.init}, stop);
  log_info("exported {} in {}; it took {:.2f} s", path, checkpoint.export_type,
           seconds_since(begin));
}

void BackgroundSave::check() {
  if (done_.valid() && done_.wait_for(std::chrono::seconds(0)) == std::future_status::ready)
    done_.get();
}

void BackgroundSave::finish() {
  for (;;) {
    check();
    std::array<int32_t, 1> in_flight = {done_.valid()};
    communicator_.all_reduce(memory_of(in_flight), DType::kI32, ReduceOp::kMax);
    if (in_flight[0] == 0) return;
    if (done_.valid())
      done_.wait_for(kLookEvery);
    else
      std::this_thread::sleep_for(kLookEvery);
  }
}

}  // namespace gxp
