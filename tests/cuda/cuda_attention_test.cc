// What kernels/ops.h leaves open of attention's tensors: where in a GPU's memory they begin.
#include <chrono>

#include "kernels/cuda/table/cuda_ops.h"
#include "lib/device/cuda_device.h"
#include "tests/kernels/halves.h"

namespace gxp {
namespace {

constexpr size_t kPositions = 33, kHeads = 2, kChannels = kHeads * 64;
const Shape kRows = {1, kPositions, kChannels}, kWide = {1, kPositions, 3 * kChannels};
const Shape kSums = {1, kHeads, kPositions};

// A tensor of bf16 that begins `skipped` elements behind the start of `buffer`.
Tensor halves_in(const Buffer& buffer, size_t skipped, const Shape& shape) {
  Memory memory = buffer.memory();
  memory.data += 2 * skipped;
  memory.bytes = 2 * shape.count();
  return {memory, DType::kBF16, shape};
}

// dqkv of attention whose arrays of halves begin `skipped` elements behind an aligned place.
Floats gradient(size_t skipped) {
  const auto device = make_cuda_device(0);
  const auto stream = device->make_stream("compute");
  const auto ops = make_cuda_ops(*stream, *device);
  const auto buffer = [&](size_t bytes) {
    return device->allocate(bytes + 2 * skipped, MemoryKind::kWorkspace);
  };
  HalfArray values(random_floats(kWide.count(), 1), DType::kBF16), result = values;
  HalfArray upstream(random_floats(kRows.count(), 2), DType::kBF16);
  const Buffer inputs = buffer(2 * kWide.count()), gradients = buffer(2 * kWide.count());
  const Buffer outs = buffer(2 * kRows.count()), douts = buffer(2 * kRows.count());
  const Buffer lse = buffer(4 * kSums.count()), delta = buffer(4 * kSums.count());
  const Tensor qkv = halves_in(inputs, skipped, kWide), dqkv = halves_in(gradients, skipped, kWide);
  const Tensor out = halves_in(outs, skipped, kRows), dout = halves_in(douts, skipped, kRows);
  const auto sums_in = [&](const Buffer& in) {
    return Tensor({in.memory().data, 4 * kSums.count(), MemorySpace::kCuda}, DType::kF32, kSums);
  };
  device->copy(qkv.memory, values.tensor(kWide).memory);
  device->copy(dout.memory, upstream.tensor(kRows).memory);
  const auto packed = [](const auto& array) {
    return GroupedHeads{array, array, array, int(kHeads), int(kHeads), HeadLayout::kBlocks};
  };
  const GroupedHeads<ConstTensor> in = packed(ConstTensor(qkv));
  ops->attention_forward(out, sums_in(lse), in);
  ops->attention_backward(packed(dqkv), sums_in(delta), dout, in, out, sums_in(lse));
  stream->synchronize(Deadline::after(std::chrono::seconds(30)));
  device->copy(result.tensor(kWide).memory, dqkv.memory);
  return result.floats();
}

TEST_CASE("attention takes arrays of halves that begin anywhere") {
  const Floats aligned = gradient(0);
  const size_t skipped = GENERATE(1, 2, 4, 8);
  CAPTURE(skipped);
  // Two ways to multiply, with a rounding of P and of dS between them, and one of each result.
  const double rounding = 0x1p-8 / double(std::numeric_limits<float>::epsilon());
  CHECK(distance_in_eps(gradient(skipped), oracle::to_values(aligned), 1) < 5 * rounding);
}

}  // namespace
}  // namespace gxp
