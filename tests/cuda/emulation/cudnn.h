// How the emulated cuDNN behaves. It holds the objects that cudnn_abi.h makes, and computes graphs
// operation by operation with the strides that they were given, late, as streams do.
#pragma once

#include <cstddef>
#include <cstdint>

namespace gxp::emulation {

struct CudnnBehaviour {
  bool is_missing = false;  // cannot be loaded
  bool fails_to_start = false;
  bool refuses = false;         // has no engine for a graph
  bool is_ordered = true;       // its sums have a fixed order
  size_t extra_workspace = 0;   // bytes beyond what cuDNN 9.19 takes on an H100
  size_t slow_from = SIZE_MAX;  // a graph with so many bytes of workspace takes milliseconds
};
CudnnBehaviour& cudnn_behaviour();

// How many graphs were computed so far.
int cudnn_runs();
// How many plans were made so far.
int cudnn_plans_made();

}  // namespace gxp::emulation
