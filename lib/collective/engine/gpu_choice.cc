#include "lib/collective/engine/gpu_choice.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

namespace gxp {
namespace {

constexpr double kLinkBytesPerS = 25e9;
constexpr double kHostBytesPerS = 5e9;

struct Seconds {
  double nccl;
  double device;
  double host;
};

Seconds predict(size_t ranks) {
  const double moved = 2 * double(ranks - 1) / double(ranks) * kModelBytes;
  const double wire = moved / kLinkBytesPerS;
  return {15e-6 + wire, 30e-6 + wire,
          80e-6 + 2 * kModelBytes / kLinkBytesPerS + moved / kHostBytesPerS};
}

// Whether NCCL can serve these ranks; the reason is its version, or why not.
Support nccl_of(const std::vector<GpuRankFacts>& ranks) {
  std::set<std::pair<std::string, std::string>> gpus;
  for (size_t rank = 0; rank < ranks.size(); ++rank) {
    const GpuRankFacts& own = ranks[rank];
    if (!own.nccl) return {false, fmt::format("rank {}: {}", rank, own.nccl.reason)};
    if (own.nccl.reason != ranks[0].nccl.reason)
      return {false, fmt::format("rank {} has {}, rank 0 {}", rank, own.nccl.reason,
                                 ranks[0].nccl.reason)};
    if (!gpus.insert({own.host, own.gpu}).second)
      return {false, fmt::format("rank {} shares its GPU with another rank", rank)};
  }
  return {true, ranks[0].nccl.reason};
}

std::string ms(double seconds) { return fmt::format("{:.2f} ms", seconds * 1e3); }

}  // namespace

GpuChoice choose_gpu_engine(const std::vector<GpuRankFacts>& ranks, const Support& reached,
                            bool layout_invariant) {
  const auto has_gpu = [](const GpuRankFacts& rank) { return !rank.gpu.empty(); };
  if (ranks.size() < 2 || std::ranges::none_of(ranks, has_gpu)) return {"native", ""};
  if (!std::ranges::all_of(ranks, has_gpu)) return {"native", "not all ranks have GPUs", true};
  const Support nccl = nccl_of(ranks);
  const Seconds predicted = predict(ranks.size());
  const std::string sizes = "for 25 MiB, by the model of gpu_choice.h";
  if (nccl && !layout_invariant)
    return {"nccl",
            fmt::format("{} is predicted to take {} {}; {}", nccl.reason, ms(predicted.nccl), sizes,
                        reached ? "native takes " + ms(predicted.device)
                                : fmt::format("native takes {} through host memory ({})",
                                              ms(predicted.host), reached.reason))};
  const std::string not_nccl =
      nccl ? fmt::format(
                 "{} is predicted to take {}, but its bits depend on sizes and topology; "
                 "comm.engine = \"nccl\" or train.deterministic = \"off\" selects it",
                 nccl.reason, ms(predicted.nccl))
           : fmt::format("NCCL cannot serve: {}", nccl.reason);
  if (reached)
    return {"native", fmt::format("between the GPUs' memory, predicted to take {} {}; {}",
                                  ms(predicted.device), sizes, not_nccl)};
  return {"native",
          fmt::format("through host memory, predicted to take {} {}, because the GPUs do not reach "
                      "each other: {}; {}",
                      ms(predicted.host), sizes, reached.reason, not_nccl),
          true};
}

}  // namespace gxp
