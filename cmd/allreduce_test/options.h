// The command line of `gxp allreduce-test`: nccl-tests' flags, and gxp's own.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cmd/allreduce_test/rank_device.h"
#include "lib/job/join.h"
#include "lib/report/report.h"
#include "lib/tools/colltest/bench_options.h"
#include "lib/tools/colltest/cases.h"
#include "lib/tools/colltest/pass_criteria.h"

namespace CLI {
class App;
}

namespace gxp {

enum class RankOrder { kGiven, kPlanned };

// The argument of --simulate that selects the links measured on this host instead of a cluster
// file.
inline constexpr std::string_view kSimulateProfile = "profile";

struct AllreduceOptions {
  std::string operation = "all_reduce";  // or "all"
  std::string dtype = "float";
  std::string redop = "sum";
  std::string root = "0";
  BenchOptions bench;
  DeviceChoice device = DeviceChoice::kCpu;
  std::vector<std::string> comm_sets;  // "comm.transport=tcp"
  bool deterministic = false;
  LaunchRequest launch;
  std::string baseline;  // file names; "": none
  double tolerance = 0.15;
  std::string output_file;
  bool explain = false;
  std::string svg;
  std::optional<std::string> calibrate;  // the profile file; "": the default one
  std::string simulate;                  // the cluster file, or kSimulateProfile
  int ranks = 0;                         // simulated; 0: as many as the cluster has GPUs
  RankOrder rank_order = RankOrder::kGiven;
  RankOrder channel_order = RankOrder::kGiven;
  std::string trace;
  std::string show_record;  // a directory
  Format format = Format::kText;
};

// Declares all options.
void define_options(CLI::App& app, AllreduceOptions& options);

// --explain, --calibrate, --simulate, --show-record and what belongs to them.
void add_modes(CLI::App& app, AllreduceOptions& options);
// kUsage: options that exclude or need each other.
void check_modes(const AllreduceOptions& options);

// Parses the values of --op, --datatype, --redop, --root and --codec. Throws kUsage, with a near
// match.
CaseRequest case_request(const AllreduceOptions& options, const CommConfig& comm);

// How the ranks join: all options that were given, and all of [comm], must be equal.
JobSettings job_settings(const AllreduceOptions& options, const CLI::App& app,
                         const CommConfig& comm);

}  // namespace gxp
