#include "kernels/cuda/cudnn/cudnn_attention.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <utility>

#include "kernels/cuda/cudnn/cudnn_library.h"
#include "kernels/cuda/timing.h"

namespace gxp {
namespace {

using TensorBinding = CudnnGraph::TensorBinding;

constexpr AttentionSlice whole(const AttentionShape& shape) {
  return {0, shape.batch, 0, shape.kv_heads};
}

template <class Args>
CudnnAttentionShape shape_of(const Args& args, const AttentionSlice& slice, SumOrder order) {
  return {shape_of(args.shape, slice), args.in.of_queries, args.in.of_kv,
          strides_of_outs(args.shape), args.dtype,         order};
}

// Where a slice of the batch's tensors begins.
struct SliceStart {
  template <class Void>
  [[nodiscard]] const void* rows(Void* all, const HeadStrides& strides, size_t head) const {
    const size_t elements = slice.row * shape.positions * strides.row + head * strides.head;
    return static_cast<const std::byte*>(all) + elements * sizeof(uint16_t);
  }
  template <class Void>
  [[nodiscard]] const void* queries(Void* all, const HeadStrides& strides) const {
    return rows(all, strides, slice.group * (shape.heads / shape.kv_heads));
  }
  template <class Void>
  [[nodiscard]] const void* kv(Void* all, const HeadStrides& strides) const {
    return rows(all, strides, slice.group);
  }
  template <class Void>
  [[nodiscard]] const void* outs(Void* all) const {
    return queries(all, strides_of_outs(shape));
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
  explicit Scalars(const AttentionScores& scores) : scale(scores.scale) {}
  float scale;
  float minus_infinity = -std::numeric_limits<float>::infinity();
  float one = 1;
};

template <class Args>
std::vector<TensorBinding> inputs_of(const Args& args, const SliceStart& start,
                                     const Scalars& scalars) {
  const auto& in = args.in;
  return {{kCudnnQueries, start.queries(in.queries, in.of_queries)},
          {kCudnnKeys, start.kv(in.keys, in.of_kv)},
          {kCudnnValues, start.kv(in.values, in.of_kv)},
          {kCudnnOut, start.outs(args.out)},
          {kCudnnLse, start.sums(args.lse)},
          {kCudnnScale, &scalars.scale},
          {kCudnnMinusInfinity, &scalars.minus_infinity}};
}

std::vector<TensorBinding> bindings_of(const AttentionBackward& args, const SliceStart& start,
                                       const Scalars& scalars) {
  std::vector<TensorBinding> bindings = inputs_of(args, start, scalars);
  const auto& to = args.gradients;
  bindings.push_back({kCudnnDout, start.outs(args.dout)});
  bindings.push_back({kCudnnDelta, start.sums(args.delta)});
  bindings.push_back({kCudnnQueryGradients, start.queries(to.queries, to.of_queries)});
  bindings.push_back({kCudnnKeyGradients, start.kv(to.keys, to.of_kv)});
  bindings.push_back({kCudnnValueGradients, start.kv(to.values, to.of_kv)});
  bindings.push_back({kCudnnOne, &scalars.one});
  return bindings;
}

// `fewest`, and the cuts whose slices take half of the most bytes, a quarter and so on.
std::vector<std::vector<AttentionSlice>> smaller_cuts(const AttentionShape& shape,
                                                      const CudnnSlicing& slicing,
                                                      const std::vector<AttentionSlice>& fewest) {
  constexpr size_t kSmallest = 32;  // a part of most_bytes: 32 MiB of 1 GiB
  std::vector<std::vector<AttentionSlice>> cuts = {fewest};
  for (size_t part = 2; part <= kSmallest; part *= 2) {
    std::vector<AttentionSlice> smaller =
        attention_slices(shape, slicing.most_bytes / part, slicing.order);
    if (!smaller.empty() && smaller != cuts.back()) cuts.push_back(std::move(smaller));
  }
  return cuts;
}

// Of the cache's line that has the number of slices.
std::string key_of(const AttentionBackward& args, const CudnnSlicing& slicing,
                   const std::string& gpu) {
  const AttentionShape& shape = args.shape;
  return fmt::format(
      "{}, cuDNN {}, attention backward, {} x {} positions, {} of {} heads of {}, {}, "
      "in slices of up to {} bytes{}",
      gpu, cudnn_version_name(cudnn_library().functions.version()), shape.batch, shape.positions,
      shape.kv_heads, shape.heads, shape.head_size, to_string(args.dtype), slicing.most_bytes,
      slicing.order == SumOrder::kFixed ? "" : ", sums in any order");
}

}  // namespace

CudnnAttention::CudnnAttention(CudaQueue& queue, const CudnnFunctions& functions,
                               const CudnnSlicing& slicing)
    : queue_(queue), slicing_(slicing) {
  queue.stream();  // makes its GPU current, which the plans are for
  plans_ = cudnn_plans(functions);
  if (!slicing.cache.empty()) cache_.emplace(slicing.cache);
}

Support CudnnAttention::forward(const AttentionForward& args) {
  cudaStream_t const stream = queue_.stream();  // makes its GPU current
  const AttentionSlice all = whole(args.shape);
  CudnnPlan& plan = plans_->plan(CudnnDirection::kForward, shape_of(args, all, slicing_.order));
  if (!plan.support) return plan.support;
  const Scalars scalars(args.scores);
  plans_->run(plan, inputs_of(args, {args.shape, all}, scalars),
              queue_.scratch(plan.graph.workspace_bytes()), stream);
  return {};
}

Support CudnnAttention::backward(const AttentionBackward& args) {
  const Slices fewest = attention_slices(args.shape, slicing_.most_bytes, slicing_.order);
  if (fewest.empty())
    return {false, fmt::format("one group of heads at {} positions takes more than {} bytes of "
                               "workspace",
                               args.shape.positions, slicing_.most_bytes)};
  queue_.stream();  // makes its GPU current
  if (const Support support = support_of(args, fewest); !support) return support;
  run(args, slices_of(args, fewest));
  return {};
}

CudnnPlan& CudnnAttention::plan_of(const AttentionBackward& args, const AttentionSlice& slice) {
  return plans_->plan(CudnnDirection::kBackward, shape_of(args, slice, slicing_.order));
}

Support CudnnAttention::support_of(const AttentionBackward& args, const Slices& slices) {
  for (const AttentionSlice& slice : slices)
    if (const CudnnPlan& plan = plan_of(args, slice); !plan.support) return plan.support;
  return {};
}

size_t CudnnAttention::workspace_bytes(const AttentionBackward& args, const AttentionSlice& slice) {
  const AttentionShape part = shape_of(args.shape, slice);
  if (slicing_.order == SumOrder::kFixed) return cudnn_workspace_bytes(part);
  return cudnn_sum_bytes(part, slicing_.order) + plan_of(args, slice).graph.workspace_bytes();
}

void CudnnAttention::run(const AttentionBackward& args, const Slices& slices) {
  cudaStream_t const stream = queue_.stream();
  const Scalars scalars(args.scores);
  for (const AttentionSlice& slice : slices) {
    std::byte* const sums = queue_.scratch(workspace_bytes(args, slice));
    std::vector<TensorBinding> bindings = bindings_of(args, {args.shape, slice}, scalars);
    if (slicing_.order == SumOrder::kAny) bindings.push_back({kCudnnQuerySums, sums});
    std::byte* const own = sums + cudnn_sum_bytes(shape_of(args.shape, slice), slicing_.order);
    plans_->run(plan_of(args, slice), bindings, own, stream);
  }
}

const CudnnAttention::Slices& CudnnAttention::slices_of(const AttentionBackward& args,
                                                        const Slices& fewest) {
  const CudnnAttentionShape shape = shape_of(args, whole(args.shape), slicing_.order);
  const auto [found, is_new] = chosen_.try_emplace(shape, fewest);
  if (is_new && cache_) found->second = fastest_of(args, fewest);
  return found->second;
}

// As the cache says or a trial finds. Gradients are stored, so a trial may make them many times.
CudnnAttention::Slices CudnnAttention::fastest_of(const AttentionBackward& args,
                                                  const Slices& fewest) {
  std::vector<Slices> cuts = smaller_cuts(args.shape, slicing_, fewest);
  if (cuts.size() == 1) return fewest;
  const std::string key = key_of(args, slicing_, queue_.gpu_name());
  std::optional<CachedChoice> chosen = cache_->find(key);
  if (!chosen) {
    std::erase_if(cuts, [&](const Slices& cut) { return !support_of(args, cut); });
    chosen = cache_->choose(key, [&] {
      std::vector<std::function<void()>> timed;
      for (const Slices& cut : cuts) timed.emplace_back([&] { run(args, cut); });
      return CachedChoice{cuts[fastest_in_turn(queue_.stream(), timed)].size()};
    });
  }
  const auto found = std::ranges::find(cuts, (*chosen)[0], &Slices::size);
  return found != cuts.end() && support_of(args, *found) ? *found : fewest;
}

}  // namespace gxp
