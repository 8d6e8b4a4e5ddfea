#include "lib/train/background_save.h"

#include <algorithm>
#include <array>
#include <string>
#include <utility>
#include <vector>

#include "lib/base/log.h"
#include "lib/ckpt/native/export_directory.h"
#include "lib/ckpt/native/part_files.h"
#include "lib/ckpt/native/step_directory.h"
#include "lib/ckpt/native/writer.h"
#include "lib/collective/communicator.h"
#include "lib/data/corpus/document_encoder.h"

namespace gxp {
namespace {

StorageDType dtype_of(ExportType type) {
  if (type == ExportType::kFp32) return StorageDType::kF32;
  return type == ExportType::kFp16 ? StorageDType::kF16 : StorageDType::kBF16;
}

}  // namespace

// What the thread reads and writes.
struct BackgroundSave::Job {
  RunConfig config;
  KeyValues settings;
  int rank;
  StagedState staged;
  std::vector<bool> files;  // files_of_a_rank()
  std::vector<std::string> names;

  void write(const std::stop_token& stop, const std::string& save_id, double stall);
  // On rank 0. Returns the path, or "" if the run has ended before.
  std::string publish(const std::stop_token& stop, const std::string& save_id);
  void export_step(const std::stop_token& stop, uint64_t step);
};

BackgroundSave::BackgroundSave(Communicator& communicator, const RunConfig& config,
                               KeyValues settings)
    : communicator_(communicator),
      job_(
          std::make_shared<Job>(Job{config, std::move(settings), communicator.rank(), {}, {}, {}})),
      task_("save into " + config.checkpoint.dir, config.comm.timeout_s) {}

void BackgroundSave::reserve(Trainer& trainer) { reserve_staging(trainer, job_->staged); }

void BackgroundSave::start(Trainer& trainer) {
  const auto begin = Deadline::Clock::now();
  finish();
  job_->files = files_of_a_rank(trainer.architecture());
  job_->names = names_of(trainer.architecture());
  stage_state(trainer,
              checkpoint_info(trainer, communicator_.world_size(), job_->config, job_->settings),
              job_->staged);
  const std::string save_id = make_save_id(communicator_);
  task_.start(job_->rank, [job = job_, save_id, stall = seconds_since(begin)](
                              const std::stop_token& stop) { job->write(stop, save_id, stall); });
}

void BackgroundSave::start_export(uint64_t step) {
  if (communicator_.rank() != 0 || job_->config.checkpoint.export_type == ExportType::kNone) return;
  task_.start(job_->rank,
              [job = job_, step](const std::stop_token& stop) { job->export_step(stop, step); });
}

void BackgroundSave::Job::write(const std::stop_token& stop, const std::string& save_id,
                                double stall) {
  const auto begin = Deadline::Clock::now();
  const CheckpointInfo& info = staged.info;
  const std::string& dir = config.checkpoint.dir;
  WriterRank writing{info.step, rank, info.world_size};
  for (const bool frozen : files) {
    writing.frozen = frozen;
    CheckpointWriter writer(dir, writing);
    if (!write_staged(staged, frozen, stop, writer)) return;
    leave_part(dir, writing, save_id, writer.finish());
  }
  if (rank != 0) return;
  const std::string path = publish(stop, save_id);
  if (path.empty()) return;
  log_info("saved {}; training waited {:.0f} ms, writing took {:.2f} s", path, stall * 1e3,
           seconds_since(begin));
  if (config.checkpoint.export_type != ExportType::kNone) export_step(stop, info.step);
}

std::string BackgroundSave::Job::publish(const std::stop_token& stop, const std::string& save_id) {
  const CheckpointInfo& info = staged.info;
  const std::string& dir = config.checkpoint.dir;
  const auto timeout = std::chrono::duration_cast<Deadline::Duration>(
      std::chrono::duration<double>(config.comm.timeout_s));
  std::vector<FilePart> parts;
  for (const bool frozen : files) {
    const WriterRank writing{info.step, 0, info.world_size, frozen};
    const auto found = await_parts(dir, writing, save_id, stop, Deadline::after(timeout));
    if (found.empty()) return "";
    const auto kept = lay_out(found, config.checkpoint, writing, names, stop);
    if (kept.empty()) return "";
    parts.insert(parts.end(), kept.begin(), kept.end());
  }
  return publish_checkpoint(dir, parts, info, retention_of(config.checkpoint));
}

void BackgroundSave::Job::export_step(const std::stop_token& stop, uint64_t step) {
  const auto begin = Deadline::Clock::now();
  const std::string path = export_weights(step_path(config.checkpoint.dir, step),
                                          {.dtype = dtype_of(config.checkpoint.export_type),
                                           .origin = config.model.init,
                                           .tokenizer = tokenizer_directory(config)},
                                          stop);
  log_info("exported {} in {}; it took {:.2f} s", path, config.checkpoint.export_type,
           seconds_since(begin));
}

void BackgroundSave::finish() {
  task_.check();
  for (;;) {  // ends: when no rank's task does anything, or one of them hangs
    std::array<int32_t, 1> in_flight = {task_.in_flight()};
    communicator_.all_reduce(memory_of(in_flight), DType::kI32, ReduceOp::kMax);
    if (in_flight[0] == 0) return;
    task_.wait_a_moment();
  }
}

}  // namespace gxp
