#include "kernels/cuda/cudnn/cudnn_attention.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/cuda/cudnn/cudnn_library.h"

namespace gxp {
namespace {

using Place = CudnnGraph::Place;

constexpr AttentionSlice whole(const AttentionShape& shape) {
  return {0, shape.batch, 0, shape.kv_heads};
}

template <class Args>
CudnnAttentionShape shape_of(const Args& args, const AttentionSlice& slice) {
  return {shape_of(args.shape, slice), args.in.query_stride, args.in.kv_stride,
          args.shape.heads * args.shape.head_size, args.dtype};
}

// Where a slice of the batch's tensors begins.
struct SliceStart {
  template <class Void>
  [[nodiscard]] const void* rows(Void* all, size_t stride, size_t head) const {
    const size_t elements = slice.row * shape.positions * stride + head * shape.head_size;
    return static_cast<const std::byte*>(all) + elements * sizeof(uint16_t);
  }
  template <class Void>
  [[nodiscard]] const void* queries(Void* all, size_t stride) const {
    return rows(all, stride, slice.group * (shape.heads / shape.kv_heads));
  }
  template <class Void>
  [[nodiscard]] const void* kv(Void* all, size_t stride) const {
    return rows(all, stride, slice.group);
  }
  template <class Void>
  [[nodiscard]] const void* outs(Void* all) const {
    return queries(all, shape.heads * shape.head_size);
  }
  [[nodiscard]] const void* sums(const float* all) const {
    const size_t head = slice.group * (shape.heads / shape.kv_heads);
    return all + (slice.row * shape.heads + head) * shape.positions;
  }

  const AttentionShape& shape;
  const AttentionSlice& slice;
};

// Scalars lie in the host's memory while a graph is run.
struct Scalars {
  explicit Scalars(const AttentionShape& shape) : scale(1.0f / std::sqrt(float(shape.head_size))) {}
  float scale;
  float minus_infinity = -std::numeric_limits<float>::infinity();
  float one = 1;
};

template <class Args>
std::vector<Place> inputs_of(const Args& args, const SliceStart& start, const Scalars& scalars) {
  const auto& in = args.in;
  return {{kCudnnQueries, start.queries(in.queries, in.query_stride)},
          {kCudnnKeys, start.kv(in.keys, in.kv_stride)},
          {kCudnnValues, start.kv(in.values, in.kv_stride)},
          {kCudnnOut, start.outs(args.out)},
          {kCudnnLse, start.sums(args.lse)},
          {kCudnnScale, &scalars.scale},
          {kCudnnMinusInfinity, &scalars.minus_infinity}};
}

std::vector<Place> places_of(const AttentionBackward& args, const SliceStart& start,
                             const Scalars& scalars) {
  std::vector<Place> places = inputs_of(args, start, scalars);
  const auto& to = args.gradients;
  places.push_back({kCudnnDout, start.outs(args.dout)});
  places.push_back({kCudnnDelta, start.sums(args.delta)});
  places.push_back({kCudnnQueryGradients, start.queries(to.queries, to.query_stride)});
  places.push_back({kCudnnKeyGradients, start.kv(to.keys, to.kv_stride)});
  places.push_back({kCudnnValueGradients, start.kv(to.values, to.kv_stride)});
  places.push_back({kCudnnOne, &scalars.one});
  return places;
}

}  // namespace

CudnnAttention::CudnnAttention(CudaQueue& queue, const CudnnFunctions& functions,
                               size_t most_workspace)
    : queue_(queue), most_workspace_(most_workspace) {
  queue.stream();  // makes its GPU current, which the plans are for
  plans_ = cudnn_plans(functions);
}

Support CudnnAttention::forward(const AttentionForward& args) {
  cudaStream_t const stream = queue_.stream();  // makes its GPU current
  const AttentionSlice all = whole(args.shape);
  CudnnPlan& plan = plans_->plan(CudnnDirection::kForward, shape_of(args, all));
  if (!plan.support) return plan.support;
  const Scalars scalars(args.shape);
  plans_->run(plan, inputs_of(args, {args.shape, all}, scalars),
              queue_.scratch(plan.graph.workspace_bytes()), stream);
  return {};
}

Support CudnnAttention::backward(const AttentionBackward& args) {
  cudaStream_t const stream = queue_.stream();  // makes its GPU current
  const std::vector<AttentionSlice> slices = attention_slices(args.shape, most_workspace_);
  if (slices.empty())
    return {false, fmt::format("gradients of the scores of one group of heads at {} positions "
                               "take more than {} bytes",
                               args.shape.positions, most_workspace_)};
  const auto plan_of = [&](const AttentionSlice& slice) -> CudnnPlan& {
    return plans_->plan(CudnnDirection::kBackward, shape_of(args, slice));
  };
  for (const AttentionSlice& slice : slices)
    if (const CudnnPlan& plan = plan_of(slice); !plan.support) return plan.support;
  const size_t bytes = cudnn_workspace_bytes(shape_of(args.shape, slices.front()));
  std::byte* const workspace = queue_.scratch(bytes);
  const Scalars scalars(args.shape);
  for (const AttentionSlice& slice : slices)
    plans_->run(plan_of(slice), places_of(args, {args.shape, slice}, scalars), workspace, stream);
  return {};
}

}  // namespace gxp
