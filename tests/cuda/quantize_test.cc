// The GPU's codecs against the CPU's, to the bit.
#include "kernels/quantize.h"

#include <cstring>
#include <limits>

#include "kernels/cuda/quantize_launch.h"
#include "lib/device/cuda_check.h"
#include "lib/device/cuda_device.h"
#include "lib/device/cuda_stream.h"
#include "tests/catch.h"
#include "tests/kernels/wire_values.h"

namespace gxp {
namespace {

using Bytes = std::vector<std::byte>;

// All that can be seen of a codec: with a residual and without, decoded alone and into a sum.
struct Seen {
  Bytes plain, encoded;
  Floats residual, decoded, sum;
};

Floats start_of(size_t count, float scale) {
  Floats floats(count);
  for (size_t i = 0; i < count; ++i) floats[i] = scale * float(int(i % 11) - 5);
  return floats;
}
// A residual of a size that changes what is encoded, whatever the values.
Floats residual_for(const Floats& x) {
  const float most = x.empty() ? 0 : std::abs(x[x.size() / 2]);
  return start_of(x.size(), std::isfinite(most) ? most / 64 : 1);
}

Seen on_cpu(const Floats& x, WireFormat format) {
  const size_t count = x.size();
  const Bytes none(encoded_bytes(format, count));
  Seen seen{none, none, residual_for(x), Floats(count), start_of(count, 1)};
  encode(seen.plain.data(), x.data(), count, format);
  encode(seen.encoded.data(), x.data(), count, format, seen.residual.data());
  decode(seen.decoded.data(), seen.encoded.data(), count, format);
  decode_and_add(seen.sum.data(), seen.encoded.data(), count, format);
  return seen;
}

class QuantizeGpu {
 public:
  // Arrays begin `skipped` elements after aligned memory.
  Seen run(const Floats& x, WireFormat format, size_t skipped) {
    skipped_ = skipped;
    buffers_.clear();
    const CudaWire wire{format, x.size()};
    Seen seen{Bytes(encoded_bytes(format, x.size())), Bytes(encoded_bytes(format, x.size())),
              residual_for(x), Floats(x.size()), start_of(x.size(), 1)};
    const auto* const from = on_gpu(x);
    auto* const plain = on_gpu(seen.plain);
    auto* const encoded = on_gpu(seen.encoded);
    auto* const residual = on_gpu(seen.residual);
    auto* const decoded = on_gpu(seen.decoded);
    auto* const sum = on_gpu(seen.sum);
    const cudaStream_t stream = native_stream(*stream_);
    check_cuda(launch_encode(stream, wire, plain, from, nullptr), "encode");
    check_cuda(launch_encode(stream, wire, encoded, from, residual), "encode");
    check_cuda(launch_decode(stream, wire, decoded, encoded), "decode");
    check_cuda(launch_decode_and_add(stream, wire, sum, encoded), "decode and add");
    stream_->finish(Deadline::after(std::chrono::seconds(30)));
    fetch(seen.plain, plain), fetch(seen.encoded, encoded), fetch(seen.residual, residual);
    fetch(seen.decoded, decoded), fetch(seen.sum, sum);
    return seen;
  }

 private:
  template <class T>
  T* on_gpu(const std::vector<T>& host) {
    const size_t before = skipped_ * (sizeof(T) == 1 ? 2 : sizeof(T));
    const size_t bytes = host.size() * sizeof(T);
    const Memory memory =
        buffers_.emplace_back(device_->allocate(before + bytes, MemoryKind::kWorkspace))
            .memory()
            .slice(before, bytes);
    device_->copy(memory, memory_of(host));
    return reinterpret_cast<T*>(memory.data);
  }
  template <class T>
  void fetch(std::vector<T>& to, T* from) {
    device_->copy(memory_of(to), {reinterpret_cast<const std::byte*>(from), to.size() * sizeof(T),
                                  MemorySpace::kCuda});
  }

  std::unique_ptr<Device> device_ = make_cuda_device(0);
  std::unique_ptr<Stream> stream_ = device_->make_stream("codec");
  std::vector<Buffer> buffers_;
  size_t skipped_ = 0;
};

size_t different(const Floats& a, const Floats& b) {
  size_t count = a.size() == b.size() ? 0 : 1;
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i)
    count += std::memcmp(&a[i], &b[i], sizeof(float)) != 0;
  return count;
}

void check_same(const Seen& found, const Seen& expected) {
  CHECK(found.plain == expected.plain);
  CHECK(found.encoded == expected.encoded);
  CHECK(different(found.residual, expected.residual) == 0);
  CHECK(different(found.decoded, expected.decoded) == 0);
  CHECK(different(found.sum, expected.sum) == 0);
}

}  // namespace

TEST_CASE("a GPU encodes and decodes to the CPU's bits, whatever the values, count and place") {
  const auto format = GENERATE(from_range(kWireFormats));
  const auto count = GENERATE(from_range(kWireCounts));
  QuantizeGpu gpu;
  for (const Distribution& distribution : kWireDistributions) {
    const Floats x = values_of(distribution, count);
    for (const size_t skipped : {0, 1}) {
      CAPTURE(int(format), count, distribution.name, skipped);
      check_same(gpu.run(x, format, skipped), on_cpu(x, format));
    }
  }
}

TEST_CASE("a GPU encodes NaN and infinity as the CPU does") {
  const auto format = GENERATE(from_range(kWireFormats));
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const float bad = GENERATE_COPY(std::nanf("7"), -std::nanf(""), kInfinity, -kInfinity, 65520.0f);
  CAPTURE(int(format), bad);
  Floats x = values_of(kWireDistributions[1], 300);
  x[200] = bad;
  check_same(QuantizeGpu().run(x, format, 0), on_cpu(x, format));
}

TEST_CASE("a GPU refuses encoded bytes at an odd address") {
  const auto format = GENERATE(from_range(kWireFormats));
  std::byte bytes[2 + 130];
  std::byte* const odd = bytes + 1 - reinterpret_cast<uintptr_t>(bytes) % 2;
  float x = 0;
  CHECK(launch_encode(nullptr, {format, 1}, odd, &x, nullptr) == cudaErrorInvalidValue);
  CHECK(launch_decode(nullptr, {format, 1}, &x, odd) == cudaErrorInvalidValue);
}

}  // namespace gxp
