// Speed of the wire formats of kernels/quantize.h on one core, per instruction set.
//   gxp_codec_bench [MiB of f32] [rounds]
// GB/s of f32 read (encode) or written (decode, decode and add); medians over the rounds. memcpy of
// the same f32 in the same run is the yardstick: it reads and writes what an encoder only reads.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <vector>

#include "kernels/cpu/kernels.h"

namespace gxp {
namespace {

template <class Body>
double median_seconds(int rounds, const Body& body) {
  using Clock = std::chrono::steady_clock;
  std::vector<double> times;
  body();
  for (int i = 0; i < rounds; ++i) {
    const auto start = Clock::now();
    body();
    times.push_back(std::chrono::duration<double>(Clock::now() - start).count());
  }
  std::nth_element(times.begin(), times.begin() + rounds / 2, times.end());
  return times[size_t(rounds / 2)];
}

struct Arrays {
  explicit Arrays(size_t count) : x(count), out(count), residual(count), wire(2 * count + 256) {
    for (size_t i = 0; i < count; ++i) x[i] = float(int(i * 2654435761u >> 8 & 0xffff) - 32768);
  }
  std::vector<float> x, out, residual;
  std::vector<std::byte> wire;
};

void measure(const QuantizeKernels& kernels, WireFormat format, std::string_view name,
             Arrays& arrays, int rounds) {
  const size_t count = arrays.x.size();
  const auto gb_per_s = [&](const auto& body) {
    return double(count * sizeof(float)) / median_seconds(rounds, body) / 1e9;
  };
  std::byte* const wire = arrays.wire.data();
  const double encode =
      gb_per_s([&] { kernels.encode(wire, arrays.x.data(), count, format, nullptr); });
  const double feedback = gb_per_s(
      [&] { kernels.encode(wire, arrays.x.data(), count, format, arrays.residual.data()); });
  const double decode = gb_per_s([&] { kernels.decode(arrays.out.data(), wire, count, format); });
  const double add =
      gb_per_s([&] { kernels.decode_and_add(arrays.out.data(), wire, count, format); });
  fmt::print("{:>6} {:>8.2f} {:>14.2f} {:>8.2f} {:>8.2f}\n", name, encode, feedback, decode, add);
}

}  // namespace
}  // namespace gxp

int main(int argc, char** argv) {
  using namespace gxp;
  const size_t mib = argc > 1 ? size_t(std::max(1, atoi(argv[1]))) : 64;
  const int rounds = argc > 2 ? std::max(1, atoi(argv[2])) : 11;
  Arrays arrays((mib << 20) / sizeof(float));
  const double copy = median_seconds(rounds, [&] {
    std::memcpy(arrays.out.data(), arrays.x.data(), arrays.x.size() * sizeof(float));
  });
  fmt::print("memcpy of {} MiB: {:.2f} GB/s\n", mib, double(mib << 20) / copy / 1e9);
  for (const Isa isa : {Isa::kBaseline, Isa::kAvx2, Isa::kAvx512}) {
    if (!cpu_has(isa)) continue;
    fmt::print("{:>6} {:>8} {:>14} {:>8} {:>8}   GB/s of f32, {}\n", "format", "encode",
               "with residual", "decode", "add", to_string(isa));
    const QuantizeKernels& kernels = cpu_kernels(isa).quantize;
    measure(kernels, WireFormat::kBF16, "bf16", arrays, rounds);
    measure(kernels, WireFormat::kF16, "f16", arrays, rounds);
    measure(kernels, WireFormat::kInt8, "int8", arrays, rounds);
    measure(kernels, WireFormat::kInt4, "int4", arrays, rounds);
  }
}
