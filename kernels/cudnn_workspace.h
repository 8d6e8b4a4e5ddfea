// The GPU memory that attention by cuDNN takes, and the parts into which a batch is cut to keep
// within it. Pure: plans ask it without a GPU.
#pragma once

#include <cstdint>
#include <vector>

#include "kernels/attention_args.h"
#include "lib/base/dtype.h"
#include "lib/base/environment.h"
#include "lib/base/error.h"

namespace gxp {

// Whether cuDNN computes attention of such heads and scores, and else why not: it takes any scale,
// but neither a window, unless that is no smaller than the positions, which is 0 here, nor a cap, nor
// rows of several documents.
Support cudnn_takes(DType dtype, size_t head_size, const AttentionScores& scores,
                    bool has_documents);

// A part of a batch that is one call of cuDNN: rows with all heads, or groups of one row's heads.
struct AttentionSlice {
  size_t row, rows;
  size_t group, groups;  // of heads of keys and values
  bool operator==(const AttentionSlice&) const = default;
};

AttentionShape shape_of(const AttentionShape& batch, const AttentionSlice& slice);

// The order in which backward sums each query's gradients over the keys.
enum class SumOrder : uint8_t {
  kFixed,  // the same in every run; cuDNN stores all scores' gradients for it
  kAny,    // as the keys' blocks are done; the sums lie in memory in f32
};

// The sums of kAny, which a call keeps before its plan's workspace.
size_t cudnn_sum_bytes(const AttentionShape& shape, SumOrder order);

// At least what a call of backward takes on any GPU that cuDNN 9.19 knows, its sums included. In a
// fixed order gradients of scores exist as a whole, of 16 bits; in any order a plan for an A100
// takes as much again as the sums. With grouped heads, gradients of keys and values of each query's
// head come on top, of up to 32 bits.
size_t cudnn_workspace_bytes(const AttentionShape& shape, SumOrder order = SumOrder::kFixed);

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
                                             size_t most = kMostCudnnWorkspace,
                                             SumOrder order = SumOrder::kFixed);

}  // namespace gxp
