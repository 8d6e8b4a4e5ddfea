#include "lib/zero/gradients.h"

#include <cmath>
#include <limits>
#include <vector>

#include "lib/zero/device_calls.h"
#include "tests/catch.h"
#include "tests/collective/run_ranks.h"
#include "tests/kernels/halves.h"
#include "tests/program/sample_programs.h"

namespace gxp {
namespace {

FlatShards whole_gradients(const ParameterLayout& layout, std::vector<float>& values) {
  return {ShardRanges(layout, 1), Tensor(memory_of(values), DType::kF32, Shape{values.size()})};
}

// Flat gradients of the sample model: element i of the buffer is f(i), padding included.
template <class F>
std::vector<float> flat_gradients(const ParameterLayout& layout, F f) {
  std::vector<float> flat(layout.count);
  for (size_t i = 0; i < flat.size(); ++i) flat[i] = f(i);
  return flat;
}

double norm_with_threads(std::vector<float>& flat, const ParameterLayout& layout, int threads) {
  ThreadPool pool(threads);
  std::vector<double> sum = {-1};  // of another step
  sum_squares(*make_cpu_ops(pool), {memory_of(sum), DType::kF64, {}}, make_parts(layout, 1, 0),
              whole_gradients(layout, flat));
  return std::sqrt(sum[0]);
}

TEST_CASE("the norm counts every element of every tensor once, and no padding", "[zero]") {
  const Architecture model = sample_architecture();
  const ParameterLayout layout = make_layout(model, 7);
  std::vector<float> ones = flat_gradients(layout, [](size_t) { return 1.0f; });
  CHECK(norm_with_threads(ones, layout, 1) == std::sqrt(double(model.parameter_count())));
}

TEST_CASE("the norm has the same bits for any number of threads", "[zero]") {
  const ParameterLayout layout = make_layout(sample_architecture(), 2);
  std::vector<float> waves = flat_gradients(layout, [](size_t i) { return std::sin(float(i)); });
  const double one = norm_with_threads(waves, layout, 1);
  CHECK(norm_with_threads(waves, layout, 2) == one);
  CHECK(norm_with_threads(waves, layout, 3) == one);
}

TEST_CASE("the first tensor that is not finite is named", "[zero]") {
  const Architecture model = sample_architecture();
  const ParameterLayout layout = make_layout(model, 2);
  std::vector<float> flat = flat_gradients(layout, [](size_t) { return 0.5f; });
  ThreadPool pool(1);
  const std::unique_ptr<Ops> ops = make_cpu_ops(pool);
  const std::vector<TensorPart> parts = make_parts(layout, 1, 0);
  CHECK(find_non_finite(*ops, parts, whole_gradients(layout, flat)) == nullptr);
  flat[layout.units[2].tensors[4].end() - 1] = std::numeric_limits<float>::infinity();
  flat[layout.units[3].tensors[0].begin] = std::numeric_limits<float>::quiet_NaN();
  const TensorPart* found = find_non_finite(*ops, parts, whole_gradients(layout, flat));
  REQUIRE(found != nullptr);
  CHECK(model.units[size_t(found->unit)].tensors[size_t(found->tensor)].name ==
        "transformer.h.1.attn.c_proj.weight");
}

// What rank `rank` adds to element `i`: of a half type no sum of two is exact.
float addend(int rank, size_t i) { return std::sin(float(i) + 100 * float(rank)); }

TEST_CASE("sums over groups and their replicas have the bits of sums over all ranks", "[zero]") {
  const DType dtype = GENERATE(DType::kF32, DType::kBF16, DType::kF16);
  struct Ranks {
    int world_size, shard_size;
  };
  const auto ranks = GENERATE(values<Ranks>({{2, 2}, {3, 3}, {4, 2}, {6, 2}, {8, 4}}));
  constexpr size_t kCount = 24 * 16;
  CAPTURE(to_string(dtype), ranks.world_size, ranks.shard_size);
  struct Sums {
    Floats all, parts;
  };
  const auto sums = run_ranks(ranks.world_size, [&](Communicator& communicator) {
    const int rank = communicator.rank();
    Floats mine(kCount);
    for (size_t i = 0; i < kCount; ++i) mine[i] = addend(rank, i);
    HalfArray whole(mine, dtype), parts(mine, dtype);
    const std::unique_ptr<Device> device = make_cpu_device();
    const std::unique_ptr<Stream> stream = device->make_stream("comm");
    const RankGroups groups{ranks.world_size, ranks.shard_size};
    DeviceCalls calls(*device, *stream, communicator, groups);
    calls.run(RankGroup::kWorld, Collective::kAllReduce, whole.tensor({kCount}));
    calls.run(RankGroup::kShards, Collective::kReduceScatter, parts.tensor({kCount}));
    const size_t part = kCount / size_t(ranks.shard_size);
    const size_t begin = part * size_t(rank % ranks.shard_size);
    if (groups.replicas() > 1)
      calls.run(RankGroup::kReplicas, Collective::kAllReduce,
                parts.tensor({kCount}).rows(begin, part));
    const auto own = [&](const HalfArray& from) {
      const Floats values = from.floats();
      return Floats(values.begin() + long(begin), values.begin() + long(begin + part));
    };
    return Sums{own(whole), own(parts)};
  });
  for (const Sums& rank : sums) CHECK(rank.all == rank.parts);
}

}  // namespace
}  // namespace gxp
