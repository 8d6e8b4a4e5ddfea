#include "lib/collective/tune/selection.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "lib/base/bytes.h"
#include "lib/base/error.h"
#include "lib/base/find_row.h"
#include "lib/base/text/time_text.h"
#include "lib/collective/tune/shared_methods.h"

namespace gxp {
namespace {

// Below 16 KiB a segment costs more to start than to move, above 1 MiB it leaves the L2 cache.
constexpr std::array<size_t, 4> kSegments = {16 << 10, 64 << 10, 256 << 10, 1 << 20};

// A prediction is off by a tenth or more, so an algorithm must be better by so much to be taken
// before one above it in the table, in order of preference.
constexpr double kClearlyBetter = 0.93;

// What is under way is searched for overlaps at each step.
constexpr size_t kMostSegments = 128;

struct Candidate {
  const Algorithm* algorithm = nullptr;
  size_t segment_bytes = 0;
  double seconds = 0;
  bool measured = false;
};

Candidate best_segment(const Algorithm& algorithm, const Call& call,
                       const SelectionSettings& settings, const CostModel& model,
                       MemoryOrigin origin) {
  const size_t bytes = call.bytes();
  const auto with = [&](size_t segment) {
    const size_t whole_elements = round_up(segment, size_of(call.dtype));
    return Candidate{&algorithm, whole_elements,
                     model.seconds(algorithm, double(bytes), double(whole_elements), origin)};
  };
  if (settings.segment_bytes > 0) return with(settings.segment_bytes);
  Candidate best = with(std::max<size_t>(bytes, 1));
  for (const size_t segment : kSegments) {
    if (segment >= bytes || !model.pipelined(algorithm)) break;
    if (bytes / segment > kMostSegments) continue;
    const Candidate candidate = with(segment);
    if (candidate.seconds < best.seconds) best = candidate;
  }
  return best;
}

// A prediction and a measured time are not compared: all candidates have one, or none is taken.
void take_measured(std::vector<Candidate>& candidates, const Call& call, const CostModel& model,
                   MemoryOrigin origin) {
  std::vector<Candidate> taken = candidates;
  for (Candidate& candidate : taken) {
    const auto seconds = model.measured(*candidate.algorithm, double(call.bytes()), origin);
    if (!seconds) return;
    candidate.seconds = *seconds;
    candidate.measured = true;
  }
  candidates = std::move(taken);
}

// The part of the time of one above it that a candidate may take at most.
double good_enough(const Candidate& candidate, const CostModel& model) {
  if (candidate.measured) return 1;
  // In shared memory an algorithm is one routine, whose time was measured and not put together.
  return model.in_shared_memory(*candidate.algorithm) ? 1 / kClearlyBetter : kClearlyBetter;
}

std::string reason_of(const Candidate& best, const Candidate& next, bool wanted) {
  std::string reason = time_text(best.seconds) + (best.measured ? " measured" : " predicted");
  if (wanted) return reason + "; asked for";
  if (next.algorithm == nullptr) return reason + "; the only one";
  return fmt::format("{}; next is {}, {}", reason, next.algorithm->name, time_text(next.seconds));
}

}  // namespace

CallShape shape_of(const Call& call, const AlgorithmPlan& plan, const GroupTopology& topology) {
  return {.world_size = topology.world_size,
          .count = call.count,
          .root = call.root,
          .channels = plan.channels,
          .segment = round_up(plan.segment_bytes, size_t{64}) / size_of(call.dtype),
          .hosts = topology.hosts,
          .orders = topology.orders};
}

AlgorithmPlan select_algorithm(const Call& call, const SelectionSettings& settings,
                               const CostModel& model, MemoryOrigin origin) {
  const Collective collective = call.collective;
  const Algorithm* wanted = parse_shared_method(settings.algorithm)
                                ? find_shared_algorithm(collective)
                                : find_algorithm(settings.algorithm, collective);
  std::vector<Candidate> candidates;
  for (const Algorithm& algorithm : algorithms()) {
    if (algorithm.collective != collective || (wanted != nullptr && &algorithm != wanted)) continue;
    if (wanted == nullptr && settings.layout_invariant && !algorithm.layout_invariant) continue;
    candidates.push_back(best_segment(algorithm, call, settings, model, origin));
  }
  if (settings.segment_bytes == 0 && settings.channels == 0) {
    take_measured(candidates, call, model, origin);
  }
  Candidate best;
  Candidate next;
  for (const Candidate& candidate : candidates) {
    if (best.algorithm == nullptr ||
        candidate.seconds < good_enough(candidate, model) * best.seconds) {
      next = std::exchange(best, candidate);
    } else if (next.algorithm == nullptr || candidate.seconds < next.seconds) {
      next = candidate;
    }
  }
  GXP_ASSERT(best.algorithm != nullptr);  // every collective has a layout-invariant algorithm
  AlgorithmPlan plan{.algorithm = best.algorithm,
                     .segment_bytes = best.segment_bytes,
                     .predicted_seconds = best.seconds,
                     .reason = reason_of(best, next, wanted != nullptr)};
  // More channels only pay where a rank has several links, which no transport here has.
  if (best.algorithm->uses.channels && settings.channels > 0) plan.channels = settings.channels;
  return plan;
}

std::vector<std::string> algorithm_choices() {
  std::vector<std::string> names = {"auto"};
  for (const std::string_view name : algorithm_names()) names.emplace_back(name);
  for (const SharedMethod method :
       {SharedMethod::kCopied, SharedMethod::kCma, SharedMethod::kTiles})
    names.emplace_back(to_string(method));
  return names;
}

void check_algorithm_name(std::string_view wanted) {
  const std::vector<std::string> names = algorithm_choices();
  if (std::ranges::find(names, wanted) != names.end()) return;
  fail_unknown(ErrorKind::kConfig, "comm.algorithm", wanted, names);
}

}  // namespace gxp
