#include "kernels/quantize.h"

#include <cmath>
#include <cstring>
#include <limits>

#include "kernels/cpu/kernels.h"
#include "tests/kernels/backends.h"
#include "tests/kernels/wire_values.h"

namespace gxp {
namespace {

bool is_blocked(WireFormat format) { return format >= WireFormat::kInt8; }

struct Encoded {
  std::vector<std::byte> bytes;
  Floats decoded, residual;
};

Encoded encode_with(const QuantizeKernels& kernels, const Floats& x, WireFormat format) {
  Encoded e{std::vector<std::byte>(encoded_bytes(format, x.size())), Floats(x.size()),
            Floats(x.size())};
  kernels.encode(e.bytes.data(), x.data(), x.size(), format, e.residual.data());
  kernels.decode(e.decoded.data(), e.bytes.data(), x.size(), format);
  return e;
}

// What quantize.h allows for element i.
double error_bound(const Floats& x, size_t i, WireFormat format) {
  if (format == WireFormat::kBF16) return std::abs(x[i]) * 0x1p-8 + 0x1p-133;
  if (format == WireFormat::kF16)
    return std::abs(x[i]) >= 65520 ? double(HUGE_VALF) : std::abs(x[i]) * 0x1p-11 + 0x1p-25;
  const size_t begin = i / kQuantizeBlock * kQuantizeBlock;
  double largest = 0;
  for (size_t j = begin; j < std::min(x.size(), begin + kQuantizeBlock); ++j)
    largest = std::max(largest, double(std::abs(x[j])));
  const double limit = format == WireFormat::kInt8 ? 127 : 7;
  return 0.5001 * std::max(largest / limit * (1 + 0x1p-7), 0x1p-126);
}

TEST_CASE("what comes back is within the format's bound, for every distribution and count",
          "[kernels]") {
  const auto format = GENERATE(from_range(kWireFormats));
  const Distribution distribution = GENERATE(from_range(kWireDistributions));
  const auto count = GENERATE(from_range(kWireCounts));
  CAPTURE(int(format), distribution.name, count);
  const Floats x = values_of(distribution, count);
  const Encoded e = encode_with(cpu_kernels(choose_isa()).quantize, x, format);
  size_t wrong = 0;
  for (size_t i = 0; i < count; ++i)
    wrong += !(std::abs(double(x[i]) - e.decoded[i]) <= error_bound(x, i, format));
  CHECK(wrong == 0);
}

TEST_CASE("every instruction set gives the same bits", "[kernels]") {
  const auto isa = GENERATE(from_range(isas_here()));
  const auto format = GENERATE(from_range(kWireFormats));
  CAPTURE(to_string(isa), int(format));
  for (const Distribution& distribution : kWireDistributions) {
    for (const size_t count : kWireCounts) {
      const Floats x = values_of(distribution, count);
      const Encoded e = encode_with(cpu_kernels(isa).quantize, x, format);
      const Encoded baseline = encode_with(cpu_kernels(Isa::kBaseline).quantize, x, format);
      CAPTURE(distribution.name, count);
      CHECK(e.bytes == baseline.bytes);
      const auto same = [&](const Floats& a, const Floats& b) {
        return count == 0 || std::memcmp(a.data(), b.data(), count * sizeof(float)) == 0;
      };
      CHECK(same(e.decoded, baseline.decoded));
      CHECK(same(e.residual, baseline.residual));
    }
  }
}

TEST_CASE("integers up to the limit come back exactly, ties go to even", "[kernels]") {
  const auto isa = GENERATE(from_range(isas_here()));
  CAPTURE(to_string(isa));
  Floats x = {127, 0.5f, 1.5f, 2.5f, -0.5f, -1.5f, -126.5f, -127, 42};
  const Encoded e = encode_with(cpu_kernels(isa).quantize, x, WireFormat::kInt8);
  CHECK(e.decoded == Floats{127, 0, 2, 2, 0, -2, -126, -127, 42});
  x = {7, -7, 6.5f, 5.5f, -3, 0};
  CHECK(encode_with(cpu_kernels(isa).quantize, x, WireFormat::kInt4).decoded ==
        Floats{7, -7, 6, 6, -3, 0});
}

TEST_CASE("decoding and adding is decoding, then adding", "[kernels]") {
  const auto isa = GENERATE(from_range(isas_here()));
  const auto format = GENERATE(from_range(kWireFormats));
  const auto count = GENERATE(from_range(kWireCounts));
  CAPTURE(to_string(isa), int(format), count);
  const QuantizeKernels& kernels = cpu_kernels(isa).quantize;
  const Floats x = random_floats(count, 1);
  const Encoded e = encode_with(kernels, x, format);
  const Floats before = random_floats(count, 2);
  Floats sum = before;
  sum.push_back(5);  // a canary behind the end
  kernels.decode_and_add(sum.data(), e.bytes.data(), count, format);
  size_t wrong = sum[count] != 5;
  for (size_t i = 0; i < count; ++i) wrong += sum[i] != before[i] + e.decoded[i];
  CHECK(wrong == 0);
}

TEST_CASE("the residual is what was lost, and is added the next time", "[kernels]") {
  const auto isa = GENERATE(from_range(isas_here()));
  const auto format = GENERATE(from_range(kWireFormats));
  CAPTURE(to_string(isa), int(format));
  const QuantizeKernels& kernels = cpu_kernels(isa).quantize;
  const Floats x = random_floats(1009, 3);
  Encoded e = encode_with(kernels, x, format);
  size_t wrong = 0;
  for (size_t i = 0; i < x.size(); ++i) wrong += e.residual[i] != x[i] - e.decoded[i];
  CHECK(wrong == 0);
  Floats corrected = x;
  for (size_t i = 0; i < x.size(); ++i) corrected[i] += e.residual[i];
  kernels.encode(e.bytes.data(), x.data(), x.size(), format, e.residual.data());
  CHECK(e.bytes == encode_with(kernels, corrected, format).bytes);
}

TEST_CASE("NaN and infinity show in what is decoded, and leave no residual", "[kernels]") {
  const auto isa = GENERATE(from_range(isas_here()));
  const auto format = GENERATE(from_range(kWireFormats));
  const float bad = GENERATE(std::nanf(""), HUGE_VALF, -HUGE_VALF);
  CAPTURE(to_string(isa), int(format), bad);
  Floats x = random_floats(300, 4);
  x[200] = bad;
  const Encoded e = encode_with(cpu_kernels(isa).quantize, x, format);
  CHECK_FALSE(std::isfinite(e.decoded[200]));
  CHECK(std::isfinite(e.decoded[5]));
  CHECK(std::isnan(e.decoded[199]) == is_blocked(format));
  CHECK(e.residual[200] == 0);
}

TEST_CASE("the wire has a scale and the integers of each whole block", "[kernels]") {
  CHECK(encoded_bytes(WireFormat::kBF16, 129) == 258);
  CHECK(encoded_bytes(WireFormat::kInt8, 0) == 0);
  CHECK(encoded_bytes(WireFormat::kInt8, 1) == 130);
  CHECK(encoded_bytes(WireFormat::kInt8, 256) == 260);
  CHECK(encoded_bytes(WireFormat::kInt4, 129) == 132);
}

}  // namespace
}  // namespace gxp
