// gxp allreduce-test: runs, checks and times collectives among ranks, as nccl-tests does on GPUs.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "cmd/allreduce_test/modes.h"
#include "cmd/command.h"
#include "cmd/exit_codes.h"
#include "cmd/result_file.h"
#include "lib/base/bytes.h"
#include "lib/base/environment.h"
#include "lib/base/error.h"
#include "lib/base/text/joined.h"
#include "lib/collective/communicator.h"
#include "lib/collective/engine/table/engines.h"
#include "lib/config/load.h"
#include "lib/job/early_end.h"
#include "lib/job/gpu_ranks.h"
#include "lib/tools/colltest/result_report.h"
#include "lib/tools/colltest/runner.h"
#include "lib/tools/colltest/session.h"

namespace gxp {
namespace {

using Options = AllreduceOptions;

// What can be known to fail before ranks are started, or before this one joins them.
void check_request(const Options& options, std::span<const BenchCase> cases,
                   const RankIdentity& identity) {
  if (options.bench.cycles == 0 && options.format != Format::kText)
    fail(ErrorKind::kUsage, "--run_cycles 0: an endless run has no result; use --format text");
  const bool launches = identity.launcher == LauncherKind::kNone;
  if (!launches && identity.local_rank != 0) return;  // they share its host
  if (identity.rank == 0) check_writable(options.output_file);
  if (identity.launcher == LauncherKind::kGxp) return;  // it has checked the memory
  const int ranks_here = launches ? std::max(1, options.launch.nproc) : identity.local_world_size;
  check_memory(memory_needed(cases, options.bench), ranks_here, available_memory());
}

// [collective]
void check_device_memory(size_t bytes_per_rank, const RankDevice& own, Communicator& communicator) {
  if (!own.folds) return;
  const uint64_t free = own.device->free_bytes();  // before a rank allocates
  const auto ranks = uint64_t(count_ranks_on(*own.device, communicator));
  if (bytes_per_rank <= free / ranks) return;
  fail(ErrorKind::kDevice,
       "allocate 2 buffers for each of {} ranks on {}: {} in all, but {} are free; lower "
       "--maxbytes or start fewer ranks on it",
       ranks, own.device->description(), format_bytes(bytes_per_rank * ranks), format_bytes(free));
}

RunFacts facts_of(const Options& options, const Communicator& communicator) {
  return {.world_size = communicator.world_size(),
          .transport = std::string(communicator.transport_name()),
          .engine = std::string(communicator.engine_name()),
          .memory = std::string(kMemoryOriginNames[size_t(options.bench.memory)]),
          .device = std::string(kDeviceChoiceNames[size_t(options.device)]),
          .keep_times = options.bench.per_iteration};
}

// Returns what makes the run fail, on rank 0.
std::vector<std::string> measure(const Options& options, std::span<const BenchCase> cases,
                                 const PassCriteria& criteria, Communicator& communicator,
                                 const BenchDevice& place) {
  RunFacts facts = facts_of(options, communicator);
  const bool first = communicator.rank() == 0;
  if (first && criteria.baseline != nullptr) criteria.baseline->check_comparable(facts, cases);
  const NcclTable table{
      .summary = fmt::format("{} ranks over {}, {} memory{}", facts.world_size, facts.transport,
                             facts.memory, place.folds == nullptr ? "" : " of GPUs"),
      .world_size = facts.world_size,
      .options = options.bench};
  const bool text = options.format == Format::kText;
  const Session done = run_session(communicator, place, cases, table,
                                   text ? write_stdout : std::function<void(const std::string&)>());
  if (!first) return {};
  facts.medium = done.medium;
  facts.copies = done.copies;
  facts.copy_bytes_per_s = rate_of_gpus(done.copies, done.ranks);
  const Report report = to_report(facts, done.ranks, done.results);
  if (!text) print(report, options.format);
  const std::string& path = options.output_file;
  if (!path.empty()) write_file(path, path.ends_with(".csv") ? to_csv(report) : to_json(report));
  return violations(criteria, facts, done.results);
}

bool measures(const Options& options) {
  return !options.explain && !options.calibrate && options.simulate.empty();
}

void check_path(const Options& options, const CommConfig& comm) {
  const bool native = choose_engine(comm).is_own;
  if (!measures(options) && !native)
    fail(ErrorKind::kUsage,
         "--engine {}: --explain, --calibrate and --simulate support only engine native",
         comm.engine);
  const bool on_gpus = options.device == DeviceChoice::kCuda;
  if (!measures(options) && on_gpus)
    fail(ErrorKind::kUsage,
         "--device cuda: --explain, --calibrate and --simulate support only host memory");
  if (comm.codec != "none" && on_gpus)
    fail(ErrorKind::kUsage, "--codec {}: codecs work on host memory; leave out --device cuda",
         comm.codec);
  if (comm.codec != "none" && (!measures(options) || !native))
    fail(ErrorKind::kUsage, "--codec {}: codecs need engine native", comm.codec);
}

// This process's part: as the launcher of the ranks, or as one of them.
int run_measurement(const Options& options, const JobSettings& job, const Environment& environment,
                    const RankIdentity& identity, const std::vector<BenchCase>& cases) {
  check_request(options, cases, identity);
  check_device(options.device);
  std::optional<Baseline> baseline;
  if (!options.baseline.empty() && identity.rank == 0) baseline.emplace(options.baseline);
  if (const auto launched = launch_ranks(options.launch, environment, job.comm)) return *launched;

  const PassCriteria criteria{.min_busbw = options.bench.min_busbw,
                              .average = options.bench.average,
                              .baseline = baseline ? &*baseline : nullptr,
                              .tolerance = options.tolerance};
  std::vector<std::string> reasons;
  const RankDevice own = make_rank_device(options.device, identity);
  JobSettings placed = job;
  if (own.folds) placed.gpu = own.device.get();
  run_rank(options.launch, environment, placed, own.on_host(), [&](Communicator& communicator) {
    check_device_memory(memory_needed(cases, options.bench), own, communicator);
    reasons = measure(options, cases, criteria, communicator, own.place());
  });
  if (!reasons.empty()) fail(ErrorKind::kMismatch, "{}", joined(reasons, "; "));
  return kExitOk;
}

int run_placed(const CLI::App& app, Options& options, const Environment& environment) {
  const JobSettings job =
      job_settings(options, app, load_comm_config(options.comm_sets, environment));
  check_modes(options);
  if (!options.show_record.empty()) {
    show_record(options);
    return kExitOk;
  }
  check_path(options, job.comm);
  if (!options.simulate.empty()) {
    simulate_cases(options, job, environment);
    return kExitOk;
  }
  const RankIdentity identity = identity_for(options.launch, environment);
  const bool launches = identity.launcher == LauncherKind::kNone;
  const int world_size =
      launches ? std::max(1, options.launch.nproc) * options.launch.nnodes : identity.world_size;
  if (options.calibrate) return calibrate_ranks(options, job, environment, world_size);
  check_job(job, environment);
  const std::vector<BenchCase> cases = expand(case_request(options, job.comm), world_size);
  if (options.explain) {
    explain_cases(options, job, environment, world_size, cases);
    return kExitOk;
  }
  return run_measurement(options, job, environment, identity, cases);
}

int run(const CLI::App& app, Options& options) {
  const Environment environment = process_environment();
  place_host(options.launch, environment);
  return telling_others(options.launch, environment,
                        [&] { return run_placed(app, options, environment); });
}

}  // namespace

std::function<int()> define_allreduce_test(CLI::App& app) {
  auto options = std::make_shared<Options>();  // kept alive by the returned action
  define_options(app, *options);
  return [options, &app] { return run(app, *options); };
}

}  // namespace gxp
