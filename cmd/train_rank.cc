#include "cmd/train_rank.h"

#include <optional>
#include <string_view>

#include "cmd/exit_codes.h"
#include "cmd/memory_limit.h"
#include "cmd/stop_signal.h"
#include "cmd/train/watched_run.h"
#include "cmd/train_report.h"
#include "lib/base/log.h"
#include "lib/collective/communicator.h"
#include "lib/data/corpus/document_encoder.h"
#include "lib/job/gpu_ranks.h"
#include "lib/train/step/backend.h"

namespace gxp {
namespace {

// [collective] Checks that the run fits into what is free on the device for each rank that has it,
// and chooses what it keeps there.
void check_free_memory(const TrainOptions& options, RunConfig& run, const PlannedRanks& planned,
                       Device& device, Communicator& communicator) {
  if (options.only_looks(run) && run.train.keep == KeepSetting::kAuto)
    run.train.keep = KeepSetting::kNone;
  const Environment environment = process_environment();
  const uint64_t free_bytes = device.free_bytes();  // before a rank allocates
  const MemoryLimit free = {.bytes = free_bytes / uint64_t(count_ranks_on(device, communicator)),
                            .source = fmt::format("free on {}", device.description()),
                            .on_gpu = true,
                            .is_free = true,
                            .plan = options.planner(run)};
  const MemoryNeed need = check_memory_limit(run, planned, environment, free);
  settle_keep(run, choose_keep(run, planned, environment, free, need), communicator);
}

constexpr std::string_view kLeavesCudnn =
    "attention by gxp, not cuDNN: rows hold documents that are kept apart";

// Sets train.attention, if it is "auto", to the kernels that take documents which are kept apart.
// Whether cuDNN might have computed it otherwise.
bool leave_cudnn(RunConfig& run) {
  if (run.data.documents != RowDocuments::kApart || run.train.attention != AttentionChoice::kAuto)
    return false;
  run.train.attention = AttentionChoice::kOwn;
  return run.train.precision != NumberType::kFp32;
}

RunOptions with_replicas(RunOptions options, const RankIdentity& identity, Transport* transport) {
  options.replicas.ranks_per_host = identity.local_world_size;
  options.replicas.transport = transport;
  return options;
}

}  // namespace

int train_on_rank(const TrainOptions& options, const RunConfig& config, JobSettings job,
                  const PlannedRanks& planned, const Environment& environment) {
  const RankIdentity identity = identity_from(environment);
  if (identity.world_size > 1) set_log_rank(identity.rank);  // also that of the lanes' threads
  RunConfig run = settings_on(config, {.nproc = identity.local_world_size});
  const bool leaves_cudnn = leave_cudnn(run);
  Backend backend = make_backend(run.train, identity.local_world_size, identity.local_rank);
  // What was "auto" is known now, and what is planned depends on it.
  const bool on_gpu = backend.device->space() == MemorySpace::kCuda;
  run.train.device = on_gpu ? TrainDevice::kCuda : TrainDevice::kCpu;
  if (!backend.has_cudnn) run.train.attention = AttentionChoice::kOwn;
  if (on_gpu) job.gpu = backend.device.get();
  if (on_gpu && leaves_cudnn && identity.rank == 0) log_info("{}", kLeavesCudnn);
  const bool looks = options.only_looks(run), trains = !looks && !options.times.by_class;
  Transport* second = nullptr;
  if (trains && run.checkpoint.replica != ReplicaPlace::kNone) job.second_transport = &second;
  std::optional<WatchedRun> watched;
  if (trains) watched.emplace(run, identity, environment);
  if (watched) watched->watch(job);
  RunSummary summary;
  ModelView view;
  ClassMeasurement times;
  const auto work = [&](Communicator& communicator) {
    if (watched) watched->joined(communicator);
    // Before all ranks have come, there is nothing to save.
    if (trains) catch_stop_signals(identity.launcher != LauncherKind::kGxp);
    check_free_memory(options, run, planned, *backend.device, communicator);
    if (options.times.by_class)
      times = measure_classes(run, communicator, backend);
    else if (looks)
      view = view_model(run, communicator, backend, options.view());
    else
      summary = run_training(run, communicator, backend,
                             watched->watched(with_replicas(options.run, identity, second)));
  };
  try {
    run_rank(options.launch, environment, job, backend.host(), work);
  } catch (const std::exception& error) {
    if (watched) watched->report_failure(error.what());
    throw;
  }
  const int ranks = identity.world_size;
  const TrainPrinting printing{
      options.format, reads_bytes(run),
      options.generates_text() ? options.generation.tokenizer.get() : nullptr, ranks};
  if (identity.rank == 0 && options.times.by_class)
    print_times(times, options.times, run, *backend.device, ranks, options.format);
  else if (identity.rank == 0 && looks)
    print_view(view, printing);
  else if (identity.rank == 0)
    print_result(summary, printing);
  return summary.signal == 0 ? kExitOk : exit_code_after_signal(summary.signal);
}

}  // namespace gxp
