// Which algorithm runs a call, and how: a pure function, so that all ranks choose the same.
//
// The model chooses the segments. Where it has measured times of all algorithms that may run, and
// the user fixed neither segment nor channels, the least of them wins; else the least prediction.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "lib/base/dtype.h"
#include "lib/collective/algorithm/call.h"
#include "lib/collective/tune/cost_model.h"
#include "lib/collective/tune/profile.h"
#include "lib/collective/tune/shared_methods.h"

namespace gxp {

// The user's choices; by default the model chooses everything.
struct SelectionSettings {
  std::string algorithm = "auto";  // auto, or a name in algorithms()
  bool layout_invariant = true;    // auto takes only algorithms whose order ignores the layout
  int channels = 0;                // parallel rings; 0: chosen
  size_t segment_bytes = 0;        // unit of pipelining; 0: chosen
};

struct AlgorithmPlan {
  const Algorithm* algorithm = nullptr;
  int channels = 1;
  size_t segment_bytes = 1;      // unit of pipelining; all of the buffer where that does not pay
  double predicted_seconds = 0;  // the measured time, where measurements decided
  SharedMethod method = SharedMethod::kMessages;  // where ranks share memory
  std::string reason;  // "11.2 us measured; next is ring, 19 us", or "... predicted; ..."
};

// The shape of a call that runs by a plan; it borrows the topology's vectors. Segments are whole
// cache lines.
CallShape shape_of(const Call& call, const AlgorithmPlan& plan, const GroupTopology& topology);

// Chooses how a call runs. A name in `settings` of which this collective has no algorithm counts as
// auto.
// Cost: a few microseconds, and the reason's text.
AlgorithmPlan select_algorithm(const Call& call, const SelectionSettings& settings,
                               const CostModel& model, MemoryOrigin origin);

// The values that a user may set: "auto", the algorithms, and the methods of shared memory.
std::vector<std::string> algorithm_choices();

// Throws kConfig, with the names there are, unless `wanted` is "auto" or some algorithm's name.
void check_algorithm_name(std::string_view wanted);

}  // namespace gxp
