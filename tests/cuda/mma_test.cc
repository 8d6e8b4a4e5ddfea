#include <chrono>

#include "lib/device/cuda_check.h"
#include "lib/device/cuda_device.h"
#include "lib/device/cuda_stream.h"
#include "tests/cuda/mma_kernels.h"
#include "tests/kernels/halves.h"

namespace gxp {
namespace {

// A GPU with a stream, and copies of arrays there.
class Gpu {
 public:
  template <class T>
  T* copy(const std::vector<T>& array) {
    buffers_.push_back(device_->allocate(array.size() * sizeof(T), MemoryKind::kWorkspace));
    device_->copy(buffers_.back().memory(), memory_of(array));
    return reinterpret_cast<T*>(buffers_.back().memory().data);
  }
  cudaStream_t stream() { return native_stream(*stream_); }
  // Reads the array that was copied first, when all that was launched is done.
  template <class T>
  void read_first(std::vector<T>& array) {
    stream_->synchronize(Deadline::after(std::chrono::seconds(30)));
    device_->copy(memory_of(array), buffers_[0].memory());
  }

 private:
  std::unique_ptr<Device> device_ = make_cuda_device(0);
  std::unique_ptr<Stream> stream_ = device_->make_stream("compute");
  std::vector<Buffer> buffers_;
};

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
  Gpu gpu;
  float* const out = gpu.copy(sums);
  check_cuda(launch_product(gpu.stream(), dtype, out, gpu.copy(bits_of(left, 256)),
                            gpu.copy(bits_of(right, 128))),
             "launch a product");
  gpu.read_first(sums);
  CHECK(distance_in_eps(sums, expected, 1) < 17);  // what truncating each of 17 terms may cost
}

TEST_CASE("a warp loads four matrices, and their transposes, of what was copied") {
  const int rows = GENERATE(0, 13, 32);
  std::vector<uint16_t> x(256);
  for (size_t i = 0; i < x.size(); ++i) x[i] = uint16_t(1000 + i);
  std::vector<uint32_t> out(256);
  Gpu gpu;
  uint32_t* const on_gpu = gpu.copy(out);
  check_cuda(launch_matrices(gpu.stream(), on_gpu, gpu.copy(x), rows), "launch loads");
  gpu.read_first(out);
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
