// The bandwidth of copies on the GPUs of a run, for comparison with its collectives.
//
// An all-reduce of K bytes among p ranks reads each rank's K bytes once and writes each rank's
// result once: 2 p K bytes of the GPUs' memory. A copy of n bytes reads and writes 2 n.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "lib/tools/colltest/bench_device.h"
#include "lib/tools/colltest/result.h"

namespace gxp {

class Communicator;

struct CopyRate {
  int rank = 0;  // that copies
  int from = 0;  // the rank whose GPU's memory it reads
  // Of its own memory: bytes read and written. From a peer's memory: received bytes.
  double bytes_per_s = 0;
};

// Measures each rank's own memory and, where collectives work on GPU memory that peers map, the
// memory of the rank before, by a broadcast among the two. Copies of `bytes`, one rank at a time,
// so ranks that share a GPU do not disturb each other. All ranks call it; the same on all. None
// without GPUs.
//   Cost    some 20 copies a rank; 2 `bytes` of memory on each.
//   Errors  those of the communicator; kDevice.
std::vector<CopyRate> measure_copies(Communicator& communicator, const BenchDevice& place,
                                     const BenchMedium& medium, size_t bytes);

// The sum over all GPUs of the rate of their own memory, each GPU once. 0: there are no rates, or
// the ranks are unknown, as on all ranks but 0.
double rate_of_gpus(std::span<const CopyRate> copies, std::span<const RankInfo> ranks);

// Whether it is an all-reduce that moves anything.
inline bool has_copy_share(const CaseResult& result) {
  return result.bench.operation->collective == Collective::kAllReduce && result.bench.count > 0;
}
// The share of `seconds` in which copies at that rate read and write what an all-reduce must.
inline double copy_share(int world_size, size_t size_bytes, double seconds, double bytes_per_s) {
  return 2.0 * world_size * double(size_bytes) / bytes_per_s / seconds;
}

}  // namespace gxp
