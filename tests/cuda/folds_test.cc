// Reductions by a GPU's kernels, held against the CPU's to the bit.
#include "kernels/cuda/cuda_folds.h"

#include <cstring>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "kernels/reduce_op.h"
#include "lib/device/cuda_device.h"
#include "tests/catch.h"
#include "tests/combinations.h"

namespace gxp {
namespace {

constexpr DType kTypes[] = {DType::kF64, DType::kF32, DType::kF16, DType::kBF16,
                            DType::kI64, DType::kI32, DType::kI8,  DType::kU8};
constexpr size_t kMostBytes = 80 << 10;  // more than all blocks take at once, as scalars
constexpr size_t kRoom = kMostBytes + 64;

// Sources, targets and their copies on the host, which the CPU folds.
class Fold {
 public:
  Fold(size_t sources, size_t targets) {
    std::mt19937_64 random(sources);
    for (size_t i = 0; i < sources + targets; ++i) {
      std::vector<uint64_t> values(kRoom / sizeof(uint64_t));
      for (uint64_t& value : values) value = random();
      const auto bytes = std::as_bytes(std::span(values));
      on_host_.emplace_back(bytes.begin(), bytes.end());
      on_gpu_.push_back(device_->allocate(kRoom, MemoryKind::kWorkspace));
      device_->copy(on_gpu_.back().memory(), memory_of(on_host_.back()));
    }
    count_ = sources;
  }

  // Buffer i begins `shift(i)` bytes late.
  template <class Shift>
  void run(size_t bytes, DType dtype, ReduceOp op, std::optional<double> factor,
           const Shift& shift) {
    std::vector<const std::byte*> sources[2];
    std::vector<std::byte*> targets[2];
    for (size_t i = 0; i < on_host_.size(); ++i) {
      std::byte* const places[2] = {on_host_[i].data() + shift(i),
                                    on_gpu_[i].memory().data + shift(i)};
      for (int side = 0; side < 2; ++side) {
        if (i < count_)
          sources[side].push_back(places[side]);
        else
          targets[side].push_back(places[side]);
      }
    }
    fold_all(targets[0], sources[0], bytes, dtype, op);
    for (std::byte* target : targets[0])
      if (factor) scale({target, bytes, MemorySpace::kHost}, dtype, *factor);
    // A block alone takes several turns.
    folds_->fold_all(*stream_, targets[1], sources[1], bytes, dtype, op,
                     {.factor = factor, .blocks = factor ? 1u : DeviceFolds::kBlocks});
    stream_->finish(Deadline::after(std::chrono::seconds(60)));
  }

  // Also what lies beside the targets is as it was.
  [[nodiscard]] bool is_same() {
    for (size_t i = 0; i < on_host_.size(); ++i) {
      std::vector<std::byte> found(kRoom);
      device_->copy(memory_of(found), on_gpu_[i].memory());
      if (found != on_host_[i]) return false;
    }
    return true;
  }

 private:
  std::unique_ptr<Device> device_ = make_cuda_device(0);
  std::unique_ptr<Stream> stream_ = device_->make_urgent_stream("folds");
  std::unique_ptr<DeviceFolds> folds_ = make_cuda_folds();
  std::vector<std::vector<std::byte>> on_host_;
  std::vector<Buffer> on_gpu_;
  size_t count_ = 0;
};

}  // namespace

TEST_CASE("a GPU folds and scales with the CPU's bits, in the reduction tree's order") {
  const std::vector<DType> types(std::begin(kTypes), std::end(kTypes));
  const std::vector<ReduceOp> ops(reduce_ops().begin(), reduce_ops().end());
  // The sizes have a rest behind 16 bytes, and a block's and more than all blocks' elements.
  const auto rows =
      combinations(types, ops, std::vector<size_t>{1, 2, 3, 4, 5, 7, 8, 11, 16, 64},
                   std::vector<size_t>{8, 40, 8232, kMostBytes}, std::vector<size_t>{0, 16, 8},
                   std::vector<std::optional<double>>{{}, 1.0 / 3, 3.0, -1.0});
  for (const auto& [dtype, op, sources, bytes, shift, factor] : rows) {
    const bool sums = op == ReduceOp::kSum || op == ReduceOp::kAvg || op == ReduceOp::kPreMulSum;
    if (!supports(op, dtype) || (factor && !sums)) continue;
    if (sources == 64 && bytes == kMostBytes) continue;  // takes a while
    CAPTURE(to_string(dtype), to_string(op), sources, bytes, shift, factor.value_or(0));
    Fold fold(sources, 2);
    fold.run(bytes, dtype, op, factor, [&](size_t i) { return i % 2 == 0 ? shift : 0; });
    REQUIRE(fold.is_same());
  }
}

TEST_CASE("a GPU folds into its sources, and nothing of nothing") {
  const auto device = make_cuda_device(0);
  const auto stream = device->make_stream("folds");
  const auto folds = make_cuda_folds();
  std::vector<float> values = {1.5f, -2, 3};
  const Buffer a = device->allocate(12, MemoryKind::kWorkspace);
  device->copy(a.memory(), memory_of(values));
  std::byte* const target = a.memory().data;
  const std::byte* const sources[] = {target, target, target};
  for (const size_t bytes : {0, 12})
    folds->fold_all(*stream, std::span(&target, 1), sources, bytes, DType::kF32, ReduceOp::kSum,
                    {});
  stream->finish(Deadline::after(std::chrono::seconds(60)));
  device->copy(memory_of(values), a.memory());
  CHECK(values == std::vector<float>{4.5f, -6, 9});
}

}  // namespace gxp
