#include "lib/train/background_save.h"

#include <pthread.h>

#include <algorithm>
#include <array>
#include <ctime>
#include <string>
#include <utility>
#include <vector>

#include "lib/base/log.h"
#include "lib/base/thread.h"
#include "lib/ckpt/native/export_directory.h"
#include "lib/ckpt/native/part_files.h"
#include "lib/ckpt/native/step_directory.h"
#include "lib/ckpt/native/writer.h"
#include "lib/collective/communicator.h"
#include "lib/data/corpus/document_encoder.h"

namespace gxp {
namespace {

constexpr std::chrono::milliseconds kLookEvery{20};
// A run that ends does not wait longer for a write that is under way.
constexpr std::chrono::seconds kEndPatience{5};
// comm.timeout_s: 10 minutes unless set. fsync() of a large file on a slow disk takes minutes.
constexpr double kTimeoutsOfACall = 10;

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
      job_(std::make_shared<Job>(
          Job{config, std::move(settings), communicator.rank(), {}, {}, {}})) {}

BackgroundSave::~BackgroundSave() {
  thread_.request_stop();
  if (!done_.valid() || done_.wait_for(kEndPatience) == std::future_status::ready) return;
  log_warn("abandon a save that hangs in a file system call");
  thread_.detach();  // it has all that it uses
}

void BackgroundSave::reserve(Trainer& trainer) { reserve_staging(trainer, job_->staged); }

void BackgroundSave::launch(Work work) {
  std::promise<void> promise;
  done_ = promise.get_future();
  thread_ =
      start_thread("of a save", [job = job_, work = std::move(work),
                                 done = std::move(promise)](const std::stop_token& stop) mutable {
        set_log_rank(job->rank);
        try {
          work(*job, stop);
          done.set_value();
        } catch (...) {
          done.set_exception(std::current_exception());
        }
      });
}

void BackgroundSave::start(Trainer& trainer) {
  const auto begin = Deadline::Clock::now();
  finish();
  job_->files = files_of_a_rank(trainer.architecture());
  job_->names = names_of(trainer.architecture());
  stage_state(trainer,
              checkpoint_info(trainer, communicator_.world_size(), job_->config, job_->settings),
              job_->staged);
  const std::string save_id = make_save_id(communicator_);
  launch([save_id, stall = seconds_since(begin)](Job& job, const std::stop_token& stop) {
    job.write(stop, save_id, stall);
  });
}

void BackgroundSave::start_export(uint64_t step) {
  GXP_ASSERT(!done_.valid());
  if (communicator_.rank() != 0 || job_->config.checkpoint.export_type == ExportType::kNone) return;
  launch([step](Job& job, const std::stop_token& stop) { job.export_step(stop, step); });
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

void BackgroundSave::check() {
  if (done_.valid() && done_.wait_for(std::chrono::seconds(0)) == std::future_status::ready)
    done_.get();
}

// The CPU time of the thread: it grows while a save goes on, and stands still in a call that hangs.
std::chrono::nanoseconds BackgroundSave::time_of_thread() {
  clockid_t clock{};
  timespec time{};
  if (done_.valid() && pthread_getcpuclockid(thread_.native_handle(), &clock) == 0)
    clock_gettime(clock, &time);
  return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
}

void BackgroundSave::finish() {
  const auto longest = std::chrono::duration_cast<Deadline::Duration>(
      std::chrono::duration<double>(kTimeoutsOfACall * job_->config.comm.timeout_s));
  Deadline stuck = Deadline::after(longest);
  std::chrono::nanoseconds used{-1};
  for (;;) {
    check();
    const auto now_used = time_of_thread();
    if (now_used != used) stuck = Deadline::after(longest);
    used = now_used;
    if (done_.valid() && stuck.expired())
      fail(ErrorKind::kIo,
           "save into {}: a file system call did not return within {:g} s; does the disk or its "
           "server hang?",
           job_->config.checkpoint.dir, stuck.seconds());
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
