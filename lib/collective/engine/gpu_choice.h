// Which engine `auto` takes for ranks that compute on GPUs: a pure function of facts about the
// ranks, which also gives the reason in words. The model, for an all-reduce of K = kModelBytes, a
// full bucket, among p ranks, of which each moves M = 2 (p - 1) / p K:
//
//   way                                        seconds
//   NCCL                                       15 us + M / 25 GB/s
//   native, between the GPUs' memory           30 us + M / 25 GB/s
//   native, through pinned memory of the host  80 us + 2 K / 25 GB/s + M / 5 GB/s
//
// 25 GB/s is what PCIe 4.0 x16 moves, the slowest link that GPUs have between them here; faster
// ones change two rows alike. The other constants are estimates, of hosts that wait for the GPU
// twice in a call between the GPUs' memory; nothing has been measured between GPUs yet. Ranks that
// share a GPU can neither have NCCL nor use a link, so the model decides nothing for them. NCCL
// comes first only where the run has not asked for bits that do not depend on the layout: NCCL
// orders its sums by size and topology, and has switches add (NVLS).
#pragma once

#include <string>
#include <tuple>
#include <vector>

#include "lib/base/error.h"

namespace gxp {

// The facts about one rank.
struct GpuRankFacts {
  std::string host;
  std::string gpu;  // its name (DeviceSharing::identity()); "": it computes on none
  Support nccl;     // whether it can load NCCL; the reason is its version, or why not
  auto fields() { return std::tie(host, gpu, nccl.ok, nccl.reason); }
};

struct GpuChoice {
  std::string engine;   // "native", "nccl"
  std::string reason;   // "" where no rank has a GPU
  bool staged = false;  // through host memory
};

inline constexpr double kModelBytes = 25 << 20;

// `reached`: whether GPUs reach each other's memory as far as that is known before they try; if
// not, why. `layout_invariant`: as SelectionSettings has it.
GpuChoice choose_gpu_engine(const std::vector<GpuRankFacts>& ranks, const Support& reached,
                            bool layout_invariant);

}  // namespace gxp
