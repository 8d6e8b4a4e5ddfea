// The GPU memory that attention by cuDNN takes, and the parts into which a batch is cut to keep
// within it. Pure: plans ask it without a GPU.
#pragma once

#include <vector>

#include "kernels/attention_args.h"
#include "lib/base/dtype.h"
#include "lib/base/environment.h"
#include "lib/base/error.h"

namespace gxp {

// Whether cuDNN computes attention of such heads, and else why not.
Support cudnn_takes(DType dtype, size_t head_size);

// A part of a batch that is one call of cuDNN: rows with all heads, or groups of one row's heads.
struct AttentionSlice {
  size_t row, rows;
  size_t group, groups;  // of heads of keys and values
  bool operator==(const AttentionSlice&) const = default;
};

AttentionShape shape_of(const AttentionShape& batch, const AttentionSlice& slice);

// At least what a plan of backward takes on any GPU that cuDNN 9.19 knows: on an A100 and an H100
// gradients of scores exist as a whole, of 16 bits, which is what a fixed order of sums costs
// there; with grouped heads, too, gradients of keys and values of each query's head, on a B200 in
// f32.
size_t cudnn_workspace_bytes(const AttentionShape& shape);

// Room for a group of 4 heads up to 11000 positions.
constexpr size_t kMostCudnnWorkspace = size_t{1} << 30;
// For measurements, the environment can name another limit, which is then used to the full. All
// ranks need the same, for the same bits.
inline constexpr const char* kCudnnSliceVariable = "GXP_CUDNN_SLICE_MIB";
// That variable in bytes, or kMostCudnnWorkspace; kConfig where it is no count from 1 to 2^20.
size_t most_cudnn_workspace(const Environment& environment);

// The fewest slices, of about the same size, the first of which is the largest, that take at most
// `most` bytes; none if one group's heads take more.
std::vector<AttentionSlice> attention_slices(const AttentionShape& batch,
                                             size_t most = kMostCudnnWorkspace);

}  // namespace gxp
