// Results for programs: JSON and CSV, in the one shape of lib/report.
//
// Facts: world_size, transport, ..., wrong, out_of_bounds, average_bus_bandwidth. Tables:
//   results     a row per case: size, count, type, op, redop, root, algorithm, ..., and for each
//               placement time_us (median of the slowest rank), algbw, busbw, wrong, p99_us,
//               ...; null where the operation has no such placement or nothing was checked
//   ranks       a row per case and rank: median and lateness of each placement
//   devices     a row per rank: host, process, processor or GPU
//   copies      a row per measured copy between or in GPUs' memory (copy_rates.h); none without
//               GPUs
// On GPUs the placements of all-reduces have copy_share: of their time, the part that copies of all
// that they must read and write take.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "lib/report/report.h"
#include "lib/tools/colltest/copy_rates.h"
#include "lib/tools/colltest/result.h"

namespace gxp {

// Facts that all rows have in common.
struct RunFacts {
  int world_size = 1;
  std::string transport;
  std::string engine;
  std::string memory;  // "ordinary" or "communicator"
  std::string device = "cpu";
  BenchMedium medium{};
  std::vector<CopyRate> copies{};
  double copy_bytes_per_s = 0;  // of all GPUs; 0: there are none
  bool keep_times = false;      // with the columns out_of_place.times_ns, in_place.times_ns
};

Report to_report(const RunFacts& facts, std::span<const RankInfo> ranks,
                 std::span<const CaseResult> results);

}  // namespace gxp
