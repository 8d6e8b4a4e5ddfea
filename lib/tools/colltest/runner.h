// Measures cases on the ranks of a communicator; those with a codec encode what leaves a host, each
// call alone, without what earlier calls have lost.
//
//   A row     is first checked, then timed, then checked again, out of place and in place. All of
//             its calls use the same memory, every page of which has been touched.
//   A timing  each timed call follows a barrier, so that no rank starts with another's delay. Its
//             time is the slowest rank's. Samples are gathered when the row is done; the loop
//             itself neither allocates nor logs.
//   GPUs      the host fills and compares copies of the buffers, with the same pattern. A call
//             ends when its output is complete on the GPU, and so does a timing; copies to pinned
//             memory, where calls need them, are part of it.
//   Data      out of place the timed input is the pattern, and the result of the last timed call is
//             checked. In place the timed data are zeros, which no reduction can make denormal.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "lib/collective/communicator.h"
#include "lib/collective/compress/compressed_all_reduce.h"
#include "lib/device/device.h"
#include "lib/tools/colltest/bench_calls.h"
#include "lib/tools/colltest/copy_rates.h"
#include "lib/tools/colltest/guarded_memory.h"
#include "lib/tools/colltest/host_view.h"
#include "lib/tools/colltest/result.h"
#include "lib/tools/colltest/trial.h"

namespace gxp {

// Bytes that each rank allocates for these cases.
size_t memory_needed(std::span<const BenchCase> cases, const BenchOptions& options);

// Throws kIo, with the numbers and a remedy, if `ranks_here` times `bytes_per_rank` is more than
// `available`.
void check_memory(size_t bytes_per_rank, int ranks_here, size_t available);
size_t available_memory();  // MemAvailable of /proc/meminfo; the largest size_t if it is missing

// The ranks in order, on rank 0; empty elsewhere.
std::vector<RankInfo> gather_rank_info(Communicator& communicator, const BenchDevice& place);

class CaseRunner {
 public:
  // All outlive the runner. Allocates the memory for the largest of `cases`. With a codec: kConfig,
  // all ranks are on one host; kUnavailable, hosts have unequal numbers of ranks; no GPUs.
  CaseRunner(Communicator& communicator, const BenchDevice& place, std::span<const BenchCase> cases,
             const BenchOptions& options);

  [[nodiscard]] const BenchMedium& medium() const { return calls_.medium(); }
  // Of the GPUs' memory, by copies as large as the largest buffer, within limits (copy_rates.h).
  [[nodiscard]] std::vector<CopyRate> measure_copies();

  // All ranks together. The result is whole on rank 0; elsewhere nothing is measured in it. Rank 0
  // logs the first wrong element of each rank.
  CaseResult run(const BenchCase& bench);

 private:
  void describe_choice(CaseResult& result) const;
  PlacementResult run_placement(const BenchCase& bench, bool in_place);

  Communicator& communicator_;
  BenchDevice place_;
  BenchOptions options_;
  bool one_clock_;  // all ranks are on one host
  size_t most_bytes_;
  BenchCalls calls_;
  HostView view_;
  GuardedMemory first_;
  GuardedMemory second_;
  std::vector<KeptMemory> kept_;           // GPUs' memory that peers map
  std::optional<HostGroups> host_groups_;  // with a codec
};

}  // namespace gxp
