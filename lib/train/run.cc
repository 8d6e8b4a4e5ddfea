#include "lib/train/run.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <vector>

#include "lib/arch/architecture.h"
#include "lib/base/bytes.h"
#include "lib/base/log.h"
#include "lib/base/median.h"
#include "lib/ckpt/file.h"
#include "lib/ckpt/native/writer.h"
#include "lib/collective/communicator.h"
#include "lib/collective/gather_texts.h"
#include "lib/train/background_save.h"
#include "lib/train/data_checks.h"
#include "lib/train/event_file.h"
#include "lib/train/graph_choice.h"
#include "lib/train/metrics.h"
#include "lib/train/profiled_steps.h"
#include "lib/train/progress.h"
#include "lib/train/rank_zero.h"
#include "lib/train/replica_check.h"
#include "lib/train/run_directories.h"
#include "lib/train/run_replicas.h"
#include "lib/train/step/backend.h"
#include "lib/train/trace/step_trace.h"
#include "lib/train/trainer.h"
#include "lib/train/training_state.h"

namespace gxp {
namespace {

EarlierRun earlier_run_of(const RunOptions& options) {
  if (options.resume) return EarlierRun::kContinue;
  return options.overwrite ? EarlierRun::kReplace : EarlierRun::kRefuse;
}

// To one checkpoint, one after the other.
struct RollBacks {
  int64_t to = -1;  // its step
  int count = 0;
};
constexpr int kMostRollBacks = 3;

// The loop with what it logs. One object per run.
class Run {
 public:
  Run(const RunConfig& config, Communicator& communicator, Backend& backend,
      const RunOptions& options, const RunDirectories& directories, DirectoryClaim& claim)
      : config_(config),
        options_(options),
        directories_(directories),
        claim_(claim),
        communicator_(communicator),
        backend_(backend),
        trainer_(config, communicator, backend),
        background_(communicator, config, options.settings),
        copies_(trainer_, communicator, config, options.settings, options.replicas),
        replicas_(trainer_, communicator, backend),
        profiled_(parse_profile_range(config.train.profile_steps), *backend.device),
        trace_(config.train.trace_steps, directories.records, communicator, trainer_.runner()) {}

  RunSummary run() {
    trainer_.note_data([this](bool waits) { enter(waits ? Activity::kData : Activity::kCompute); });
    start();
    int signal = 0;
    while (signal == 0 && trainer_.steps_done() < config_.train.steps) signal = step();
    return finish(signal);
  }

 private:
  [[nodiscard]] bool leads() const { return communicator_.rank() == 0; }
  [[nodiscard]] bool resumes() const { return claim_.earlier == EarlierRun::kContinue; }
  [[nodiscard]] bool last_step() const { return trainer_.steps_done() >= config_.train.steps; }

  void enter(Activity activity) {
    trace_.enter(activity);
    options_.enters(activity, trainer_.steps_done() + 1, backend_.device->tracker().peak().total());
  }

  void start() {
    compare_data();
    if (copies_.resume(resumes())) {
      claim_.earlier = EarlierRun::kContinue;
    } else if (!resumes()) {
      trainer_.initialise_weights();
    } else if (!resume_state(trainer_, communicator_, config_, options_.settings)) {
      fail(ErrorKind::kIo, "resume from {}: this rank finds no checkpoint there",
           config_.checkpoint.dir);  // rank 0 has seen one: claim_directories()
    }
    // On every rank: hosts may differ in what they can do.
    if (!trainer_.offloaded().is_empty())
      log_info("offloaded: {}", trainer_.offloaded().description());
    peak_ = peak_rate(backend_, config_.train);
    if (peak_) {
      graphs_ = choose_graphs(config_, trainer_.architecture(), trainer_.positions(), peak_->flops);
      if (graphs_.records) trainer_.record_graphs(graphs_.otherwise);
    }
    if (config_.checkpoint.async) background_.reserve(trainer_);
    summary_.parameters = trainer_.architecture().parameter_count();
    if (!directories_.checkpoints.empty()) prepare_directory(directories_.checkpoints);
    if (claim_.earlier == EarlierRun::kReplace)
      communicator_.barrier();  // model.init may name what is removed now
    if (leads()) {
      open_files();
      announce();
    }
    if (trainer_.has_validation() && config_.train.valid_every > 0 && !last_step()) {
      enter(Activity::kEvaluate);
      summary_.valid_start = trainer_.validate();
      if (leads())
        log_info("step {}: validation loss {:.4f}", trainer_.steps_done(), *summary_.valid_start);
    }
  }

  void compare_data() {
    const auto compare = [&](const std::vector<DataFingerprint>& data, const std::string& setting) {
      if (leads()) log_data(data, setting);
      check_same_data(data, setting, communicator_);
    };
    compare(trainer_.train_data(), "data.train");
    if (trainer_.has_validation()) compare(trainer_.valid_data(), "data.valid");
  }

  void open_files() {
    if (!directories_.checkpoints.empty()) {
      if (claim_.earlier == EarlierRun::kReplace) remove_checkpoints(directories_.checkpoints);
      mark_directory(directories_.checkpoints, options_.jobs);
      options_.owns_directories();
      if (resumes() || !options_.jobs.empty()) remove_stale(directories_.checkpoints);
    }
    if (!directories_.records.empty())
      write_text(directories_.records + "/resolved.toml", options_.resolved_settings);
    open_metrics();
    if (claim_.earlier == EarlierRun::kReplace && !directories_.records.empty())
      for (const auto remove : {EventFile::remove_all, StepTrace::remove})
        remove(directories_.records);
    if (config_.train.tensorboard) events_.emplace(directories_.records, trainer_.steps_done());
  }

  // Their lines go on after the steps that are done.
  void open_metrics() {
    metrics_.clear();
    for (const std::string& path : directories_.metrics)
      metrics_.emplace_back(path, trainer_.steps_done(),
                            path == directories_.records + "/metrics.jsonl");
  }

  void announce() {
    if (!backend_.choice.empty()) log_info("{}", backend_.choice);
    if (const std::string& codec = config_.comm.codec; codec != "none")
      log_info("{}", describe_codec(codec, trainer_.memory().groups.hosts));
    if (const std::string& codec = config_.comm.gather_codec; codec != "none")
      log_info("{}", describe_gather_codec(codec, trainer_.memory().groups));
    if (is_on_device() && !trainer_.device_collectives())
      log_info("gradients and parameters go through host memory: {}",
               trainer_.device_collectives().reason);
    const MemoryUse use = backend_.device->tracker().live();
    log_info("{} on {}: {:.2f} M parameters{}, {} x {} thread(s), {}{}", config_.model.family,
             backend_.ops->description(), double(summary_.parameters) / 1e6,
             describe_trained(trainer_.architecture()), communicator_.world_size(),
             backend_.pool->thread_count(), config_.parallel.strategy, describe_communication());
    log_info("memory per rank: {} (parameters {}, gradients {}, optimizer {}, activations {})",
             format_bytes(use.total()), format_bytes(use[MemoryKind::kParameters]),
             format_bytes(use[MemoryKind::kGradients]), format_bytes(use[MemoryKind::kOptimizer]),
             format_bytes(use[MemoryKind::kActivations] + use[MemoryKind::kWorkspace]));
    if (peak_) log_info("{}", describe_mfu(*peak_));
    if (const auto profiled = parse_profile_range(config_.train.profile_steps);
        profiled && trainer_.steps_done() >= profiled->last)
      log_warn("train.profile_steps {}: the run continues at step {}, so none is profiled",
               config_.train.profile_steps, trainer_.steps_done() + 1);
    if (!graphs_.reason.empty())
      log_info("CUDA graphs {}: {}", graphs_.records ? "on" : "off", graphs_.reason);
  }

  [[nodiscard]] bool is_on_device() const { return backend_.device->space() != MemorySpace::kHost; }

  // ", transport shm, all-reduce direct: 41 us predicted; ...", for a full bucket; "" for one rank.
  std::string describe_communication() const {
    if (communicator_.world_size() == 1) return "";
    if (is_on_device() && trainer_.device_collectives())
      return fmt::format(", transport {}, collectives between the devices' memories",
                         communicator_.transport_name());
    const AlgorithmPlan plan =
        communicator_.plan({.collective = Collective::kAllReduce,
                            .dtype = DType::kF32,
                            .count = config_.parallel.bucket_bytes / sizeof(float)});
    const auto name =
        plan.algorithm == nullptr ? communicator_.engine_name() : plan.algorithm->name;
    return fmt::format(", transport {}, all-reduce {}: {}", communicator_.transport_name(), name,
                       plan.reason);
  }

  // One step and what is due after it. Returns the signal to stop for, or 0.
  int step() {
    std::array<int32_t, 1> signal = {options_.stop_signal()};
    StepMetrics metrics;
    if (leads()) options_.begins_step(trainer_.steps_done() + 1);
    enter(Activity::kCompute);
    survive([&] { trace_.begin_step(trainer_.steps_done() + 1); });
    profiled_.begin_step(trainer_.steps_done() + 1);
    metrics.result = trainer_.step(signal[0] != 0);
    profiled_.end_step(trainer_.steps_done());
    trace_.end_step(metrics.result);
    const StepResult& r = metrics.result;
    summary_.loss = r.loss;
    if (config_.train.precision == NumberType::kFp16 || trainer_.clipping().steps_skipped() > 0)
      metrics.skipped_steps = trainer_.clipping().steps_skipped();
    if (r.skipped && !r.rolls_back && leads())
      log_info("step {}: {}; no update", r.step, r.why_skipped);
    seconds_.push_back(r.seconds);
    if (r.stop_requested) communicator_.all_reduce(memory_of(signal), DType::kI32, ReduceOp::kMax);
    if (r.rolls_back) {
      roll_back(r);
      return signal[0];
    }
    if (validation_due()) {
      enter(Activity::kEvaluate);
      metrics.valid_loss = summary_.valid_end = trainer_.validate();
    }
    if (leads()) report(metrics);
    background_.check();
    const int every = config_.train.check_replicas;
    if (every > 0 && (save_due(signal[0]) || r.step % every == 0)) replicas_.check();
    if (save_due(signal[0])) save();
    if (signal[0] == 0) copies_.note_step();
    return signal[0];
  }

  // To the newest checkpoint, but not with its data: those after the step `bad` come next.
  void roll_back(const StepResult& bad) {
    enter(Activity::kLoad);
    background_.finish();
    copies_.drop();
    const uint64_t samples = trainer_.samples_consumed();
    if (config_.checkpoint.dir.empty() ||
        !resume_state(trainer_, communicator_, config_, options_.settings))
      fail(ErrorKind::kMismatch,
           "step {}: {}; there is no checkpoint yet to roll back to (train.bad_step); the weights "
           "were those of step {}",
           bad.step, bad.why_skipped, bad.step - 1);
    const int64_t step = trainer_.steps_done();
    roll_backs_ = {step, roll_backs_.to == step ? roll_backs_.count + 1 : 1};
    if (roll_backs_.count > kMostRollBacks)
      fail(ErrorKind::kMismatch,
           "step {}: {}, after {} times that the run was rolled back to step {} (train.bad_step); "
           "try a lower optim.lr",
           bad.step, bad.why_skipped, kMostRollBacks, step);
    trainer_.continue_from(step, samples);
    if (!leads()) return;
    open_metrics();
    if (events_ && !survive([&] { events_->go_back_to(step); })) events_.reset();
    log_warn("step {}: {}; rolled back to step {}, with the data that follow this step", bad.step,
             bad.why_skipped, step);
  }

  void save() {
    enter(Activity::kSave);
    for (DirectoryLock& lock : claim_.locks) lock.keep();
    if (config_.checkpoint.async) return background_.start(trainer_);
    background_.finish();  // an export, whose checkpoint may be removed now
    save_state(trainer_, communicator_, config_, options_.settings);
    background_.start_export(uint64_t(trainer_.steps_done()));
  }

  [[nodiscard]] bool validation_due() const {
    if (!trainer_.has_validation()) return false;
    const int every = config_.train.valid_every;
    return last_step() || (every > 0 && trainer_.steps_done() % every == 0);
  }

  [[nodiscard]] bool save_due(int signal) const {
    if (config_.checkpoint.dir.empty()) return false;
    const int every = config_.checkpoint.every;
    return signal != 0 || last_step() || (every > 0 && trainer_.steps_done() % every == 0);
  }

  void report(StepMetrics& metrics) {
    const StepResult& r = metrics.result;
    const double flops =
        trainer_.architecture().train_flops_per_token(trainer_.positions()) * double(r.tokens);
    if (peak_) {
      metrics.peak_flops = peak_->flops;
      metrics.mfu = flops / r.seconds / (peak_->flops * communicator_.world_size());
    }
    metrics.epochs = trainer_.epochs();
    metrics.peak = backend_.device->tracker().peak();
    metrics.host_bytes = trainer_.offloaded().bytes(Storage::kHost);
    metrics.file_bytes = trainer_.offloaded().bytes(Storage::kFile);
    if (last_step() && backend_.free_at_start > 0) report_driver(metrics);
    std::erase_if(metrics_,
                  [&](MetricsFile& file) { return !survive([&] { file.write(metrics); }); });
    if (events_ && !survive([&] { events_->write(metrics); })) events_.reset();
    const size_t recent = std::min<size_t>(seconds_.size(), 20);
    const double per_step =
        std::accumulate(seconds_.end() - std::ptrdiff_t(recent), seconds_.end(), 0.0) /
        double(recent);
    options_.ends_step(metrics, per_step);
    const bool due = r.step == 1 || last_step() || r.step % config_.train.log_every == 0;
    if (!due && !metrics.valid_loss) return;
    log_info("{}", progress_line(metrics, config_.train.steps, per_step, std::time(nullptr)));
  }

  // Missing metrics cost no checkpoint: the run goes on without the file. Whether `write` did.
  bool survive(const std::function<void()>& write) {
    try {
      write();
      return true;
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::kIo) throw;
      summary_.metrics_error = error.what();
      log_warn("{}; training continues without that file, and the run will end with this error",
               error.what());
      return false;
    }
  }

  // What the driver counts in addition to the planned memory, which the tracker counts.
  void report_driver(StepMetrics& metrics) {
    const uint64_t free = backend_.device->free_bytes();
    metrics.driver_bytes = backend_.free_at_start - std::min(free, backend_.free_at_start);
    log_info("GPU memory: {} as counted by the driver (without context), {} by gxp",
             format_bytes(metrics.driver_bytes), format_bytes(metrics.peak.total()));
  }

  RunSummary finish(int signal) {
    enter(Activity::kSave);
    background_.finish();
    copies_.finish();
    survive([&] { trace_.finish(); });
    summary_.signal = signal;
    summary_.steps = trainer_.steps_done();
    summary_.seconds = std::accumulate(seconds_.begin(), seconds_.end(), 0.0);
    const double seconds = median_of(seconds_);
    const double tokens = double(trainer_.positions()) * double(trainer_.samples_per_step());
    summary_.tokens_per_s = seconds > 0 ? tokens / seconds : 0;
    summary_.peak_bytes = backend_.device->tracker().peak().total();
    if (options_.generation.count > 0 && signal == 0 && (leads() || trainer_.is_sharded())) {
      enter(Activity::kGenerate);
      summary_.generated = generate(trainer_.model(), options_.generation);
    }
    return summary_;
  }

  const RunConfig& config_;
  const RunOptions& options_;
  const RunDirectories& directories_;
  DirectoryClaim& claim_;  // with the locks on rank 0 only
  Communicator& communicator_;
  Backend& backend_;
  Trainer trainer_;
  BackgroundSave background_;
  RunReplicas copies_;
  ReplicaCheck replicas_;
  RollBacks roll_backs_;
  ProfiledSteps profiled_;
  StepTrace trace_;
  std::optional<PeakRate> peak_;
  GraphChoice graphs_;
  std::vector<MetricsFile> metrics_;  // rank 0 only
  std::optional<EventFile> events_;   // likewise
  std::vector<double> seconds_;       // of each step
  RunSummary summary_;
};

// [collective] Rank 0 takes the locks; all do what it has found.
DirectoryClaim claim(const RunDirectories& directories, const RunOptions& options,
                     Communicator& communicator) {
  DirectoryClaim claim{{}, earlier_run_of(options)};
  do_on_rank_zero(communicator, [&] {
    claim = claim_directories(directories, earlier_run_of(options), options.jobs);
    options.enters(Activity::kLoad, 0, 0);
  });
  if (options.jobs.empty()) return claim;
  const std::string found = gather_texts(communicator, std::to_string(int(claim.earlier)))[0];
  claim.earlier = EarlierRun(found.at(0) - '0');
  return claim;
}

}  // namespace

RunSummary run_training(const RunConfig& config, Communicator& communicator, Backend& backend,
                        const RunOptions& options) {
  const RunDirectories directories = directories_of(config, options.metrics_path);
  DirectoryClaim claimed = claim(directories, options, communicator);
  if (communicator.rank() != 0) options.enters(Activity::kLoad, 0, 0);
  return Run(config, communicator, backend, options, directories, claimed).run();
}

}  // namespace gxp
