#include "cmd/train/watched_run.h"

#include <fmt/chrono.h>

#include <chrono>
#include <ctime>
#include <memory>
#include <utility>

#include "lib/base/error.h"
#include "lib/base/log.h"
#include "lib/base/thread.h"
#include "lib/collective/communicator.h"
#include "lib/collective/tune/profile.h"

namespace gxp {
namespace {

constexpr std::chrono::seconds kReportTime{2};

}  // namespace

WatchedRun::WatchedRun(const RunConfig& run, const RankIdentity& identity,
                       const Environment& environment)
    : directory_(run.checkpoint.dir.empty() ? run.train.run_dir : run.checkpoint.dir),
      recorder_(identity.rank, identity.world_size, run.comm.flight_recorder),
      environment_(shown_environment(environment)) {
  facts_.total_steps = run.train.steps;
  if (identity.rank == 0) server_.emplace(directory_, JobSources{recorder_, facts_, survey_});
}

WatchedRun::~WatchedRun() { await_report(); }

void WatchedRun::watch(JobSettings& job) {
  job.recorder = &recorder_;
  job.survey = &survey_;
  job.on_verdict = [this](const FailureVerdict& verdict) {
    try {
      write(verdict.reason, verdict, capture_stacks());
    } catch (const std::exception& error) {
      log_warn("leave no report of the failure: {}", error.what());  // the verdict goes on
    }
  };
}

RunOptions WatchedRun::watched(RunOptions options) {
  options.enters = [this](Activity activity, int64_t step, uint64_t device_peak_bytes) {
    enter(activity, step, device_peak_bytes);
  };
  options.ends_step = [this](const StepMetrics& metrics, double seconds) {
    note(metrics, seconds);
  };
  return options;
}

void WatchedRun::joined(const Communicator& communicator) {
  transport_ = communicator.transport_name();
}

void WatchedRun::enter(Activity activity, int64_t step, uint64_t device_peak_bytes) {
  recorder_.enter_activity(activity, step, device_peak_bytes);
  if (owns_directory_) return;
  owns_directory_ = true;
  if (!server_) return;
  server_->own_directory();
  try {
    if (!directory_.empty()) put_failure_aside(failure_directory(directory_));
  } catch (const Error& error) {
    log_warn("{}", error.what());
  }
}

void WatchedRun::write(std::string error, std::optional<FailureVerdict> verdict,
                       std::vector<ThreadStack> threads) {
  if (!owns_directory_ || directory_.empty()) return;
  const std::lock_guard lock(mutex_);
  if (written_.valid()) return;
  RankFailure failure = describe(std::move(error), std::move(verdict));
  failure.threads = std::move(threads);
  // The thread shares nothing with this object, which may be gone before it.
  auto done = std::make_shared<std::promise<void>>();
  written_ = done->get_future();
  writer_ = start_thread("gxp-failure", [failure = std::move(failure), done,
                                         directory = failure_directory(directory_)]() mutable {
    set_log_rank(failure.rank);
    const Machine machine = this_machine();
    failure.cpu = fmt::format("{}, {} cores", machine.cpu, machine.cores);
    try {
      write_failure(directory, failure);
    } catch (const Error& error) {
      log_warn("{}", error.what());
    }
    done->set_value();
  });
}

RankFailure WatchedRun::describe(std::string error, std::optional<FailureVerdict> verdict) {
  RankFailure failure{.error = std::move(error), .verdict = std::move(verdict)};
  failure.time = fmt::format("{:%FT%TZ}", fmt::gmtime(std::time(nullptr)));
  failure.flight = recorder_.image();
  const FlightRecord record = parse_flight_record(failure.flight, "of this rank");
  failure.rank = record.rank;
  failure.world_size = record.world_size;
  failure.host = record.host_name;
  failure.process = record.process;
  failure.step = record.step;
  failure.activity = to_string(record.activity);
  failure.build = build_id();
  failure.transport = transport_;
  failure.environment = environment_;
  const std::lock_guard last(last_mutex_);
  if (last_) failure.metrics = to_json_line(*last_);
  return failure;
}

void WatchedRun::await_report() {
  const std::lock_guard lock(mutex_);
  if (!writer_.joinable()) return;
  if (written_.wait_for(kReportTime) == std::future_status::ready) return;  // the thread ends
  log_warn("abandon the report of the failure: to write it into {} hangs", directory_);
  writer_.detach();  // nothing can end a call of the file system
}

void WatchedRun::report_failure(const std::string& error) {
  write(error, std::nullopt, {});
  await_report();
}

void WatchedRun::note(const StepMetrics& metrics, double seconds) {
  {
    const std::lock_guard lock(last_mutex_);
    last_ = metrics;
  }
  const StepResult& result = metrics.result;
  facts_.loss = result.loss;
  facts_.seconds_per_step = seconds;
  facts_.tokens_per_step = double(result.tokens);
  facts_.step_ended = std::chrono::steady_clock::now().time_since_epoch().count();
  facts_.steps_done = result.step;
  ++facts_.steps_made;
}

}  // namespace gxp
