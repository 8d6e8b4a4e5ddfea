#include <chrono>

#include "lib/device/cuda_check.h"
#include "lib/device/cuda_device.h"
#include "lib/device/cuda_stream.h"
#include "tests/cuda/mma_kernels.h"
#include "tests/kernels/halves.h"

namespace gxp {
namespace {

// Runs `launch(stream, device's copies of arrays...)`, then brings the first array back.
template <class Out, class Launch, class... In>
void run_on_device(std::vector<Out>& out, const Launch& launch, const std::vector<In>&... in) {
  const auto device = make_cuda_device(0);
  const auto stream = device->make_stream("compute");
  const auto copy = [&](const auto& array) {
    Buffer buffer = device->allocate(array.size() * sizeof(array[0]), MemoryKind::kWorkspace);
    device->copy(buffer.memory(), memory_of(array));
    return buffer;
  };
  const std::array<Buffer, 1 + sizeof...(In)> copies = {copy(out), copy(in)...};
  size_t next = 1;
  const auto data = [&](auto type) {
    return reinterpret_cast<const decltype(type)*>(copies[next++].memory().data);
  };
  auto* const result = reinterpret_cast<Out*>(copies[0].memory().data);
  const std::tuple<const In*...> inputs{data(In{})...};
  check_cuda(
      std::apply([&](auto... arrays) { return launch(native_stream(*stream), result, arrays...); },
                 inputs),
      "launch");
  stream->synchronize(Deadline::after(std::chrono::seconds(30)));
  device->copy(memory_of(out), copies[0].memory());
}

std::vector<uint16_t> bits_of(const HalfArray& halves, size_t count) {
  const auto* const first = reinterpret_cast<const uint16_t*>(halves.data());
  return {first, first + count};
}

TEST_CASE("a warp's 16 x 8 x 16 product is the loop's, with the sums that were there") {
  const DType dtype = GENERATE(DType::kBF16, DType::kF16);
  const HalfArray left(random_floats(256, 1), dtype), right(random_floats(128, 2), dtype);
  const Floats before = random_floats(128, 3), a = left.floats(), b = right.floats();
  Floats sums = before;
  oracle::Values expected = oracle::to_values(before);
  for (size_t i = 0; i < 128; ++i) {
    for (size_t k = 0; k < 16; ++k)
      expected[i] += double(a[i / 8 * 16 + k]) * double(b[8 * k + i % 8]);
  }
  run_on_device(
      sums,
      [&](auto stream, auto* out, auto*... in) {
        return launch_product(stream, dtype, out, in...);
      },
      bits_of(left, 256), bits_of(right, 128));
  CHECK(distance_in_eps(sums, expected, 1) < 17);  // what truncating each of 17 terms may cost
}

TEST_CASE("a warp loads four matrices, and their transposes, of what was copied") {
  const int rows = GENERATE(0, 13, 32);
  std::vector<uint16_t> x(256);
  for (size_t i = 0; i < x.size(); ++i) x[i] = uint16_t(1000 + i);
  std::vector<uint32_t> out(256);
  run_on_device(
      out,
      [&](auto stream, auto* to, auto* from) { return launch_matrices(stream, to, from, rows); },
      x);
  const auto at = [&](size_t matrix, size_t row, size_t column) {
    return 8 * matrix + row < size_t(rows) ? x[64 * matrix + 8 * row + column] : 0u;
  };
  for (size_t i = 0; i < 128; ++i) {
    const size_t row = i / 4 / 4, column = i / 4 % 4 * 2;
    CHECK(out[i] == (at(i % 4, row, column) | at(i % 4, row, column + 1) << 16));
    CHECK(out[128 + i] == (at(i % 4, column, row) | at(i % 4, column + 1, row) << 16));
  }
}

}  // namespace
}  // namespace gxp
