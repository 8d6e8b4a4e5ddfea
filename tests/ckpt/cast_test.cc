#include "lib/ckpt/cast.h"

#include <bit>
#include <cmath>
#include <limits>
#include <random>

#include "lib/base/dtype.h"
#include "tests/catch.h"
#include "tests/ckpt/samples.h"

namespace gxp {
namespace {

template <class Element>
NamedTensor stored(StorageDType dtype, const std::vector<Element>& values) {
  return {{"a", Role::kWeight, dtype, {values.size()}}, [values](uint64_t begin, Memory out) {
            std::memcpy(out.data, values.data() + begin, out.bytes);
          }};
}

struct CastResult {
  TensorInfo info;
  std::vector<uint16_t> words;
  uint64_t overflowed;
};

CastResult cast_one(const NamedTensor& tensor, StorageDType dtype) {
  const auto overflowed = std::make_shared<OverflowCount>(0);  // owners: here and the reader
  const NamedTensors cast = cast_weights({.tensors = {tensor}}, dtype, overflowed);
  std::vector<uint16_t> words;
  for (int pass = 0; pass < 2; ++pass) {  // the second one counts nothing again
    words.clear();
    stream(cast.tensors[0], [&](ConstMemory block) {
      const size_t begin = words.size();
      words.resize(begin + block.bytes / 2);
      std::memcpy(words.data() + begin, block.data, block.bytes);
    });
  }
  return {cast.tensors[0].info, words, *overflowed};
}

// The nearest multiple of 2^-8 * 2^exponent, ties to even, as bf16 has them.
uint16_t nearest_brain(double value) {
  int exponent = 0;
  (void)std::frexp(value, &exponent);
  const double unit = std::ldexp(1.0, exponent - 8);
  return BFloat16(float(std::nearbyint(value / unit) * unit)).bits;
}

}  // namespace

TEST_CASE("weights become 16-bit by the rounding of lib/base/dtype.h, in pieces", "[ckpt]") {
  const size_t count = GENERATE(0, 1, 8192, 20011);
  std::vector<float> values(count);
  std::mt19937 random(7);
  for (float& value : values) value = std::bit_cast<float>(uint32_t(random()));
  const CastResult brain = cast_one(stored(StorageDType::kF32, values), StorageDType::kBF16);
  const CastResult half = cast_one(stored(StorageDType::kF32, values), StorageDType::kF16);
  CHECK(brain.info.dtype == StorageDType::kBF16);
  uint64_t wrong = 0, overflowed = 0;
  for (size_t i = 0; i < count; ++i) {
    wrong += uint64_t(brain.words[i] != BFloat16(values[i]).bits);
    wrong += uint64_t(half.words[i] != Float16(values[i]).bits);
    overflowed += uint64_t(std::isfinite(values[i]) && std::isinf(float(Float16(values[i]))));
  }
  CHECK(wrong == 0);
  CHECK(half.overflowed == overflowed);
}

TEST_CASE("doubles are rounded once, to the nearest", "[ckpt]") {
  std::vector<double> values = {1 + 0x1p-8 + 0x1p-40, 1 + 0x1p-8 - 0x1p-40, 1 + 0x1p-8,
                                1 + 3 * 0x1p-8 - 0x1p-40};
  std::mt19937_64 random(7);
  for (int i = 0; i < 1000; ++i)
    values.push_back(double(int64_t(random())) * 0x1p-60 + double(random() % 3) * 0x1p-62);
  const CastResult brain = cast_one(stored(StorageDType::kF64, values), StorageDType::kBF16);
  for (size_t i = 0; i < values.size(); ++i) REQUIRE(brain.words[i] == nearest_brain(values[i]));
  const std::vector<double> ends = {1e300, -1e-300, std::numeric_limits<double>::infinity(), NAN};
  const CastResult half = cast_one(stored(StorageDType::kF64, ends), StorageDType::kF16);
  CHECK(half.words == std::vector<uint16_t>{0x7c00, 0x8000, 0x7c00, 0x7e00});
  CHECK(half.overflowed == 1);
}

TEST_CASE("what is no weight of a floating-point type is not cast", "[ckpt]") {
  const auto overflowed = std::make_shared<OverflowCount>(0);
  const NamedTensors cast = cast_weights({.tensors = {counting_tensor("m", {2}, 0, Role::kAdamM),
                                                      stored<int64_t>(StorageDType::kI64, {1}),
                                                      stored<uint8_t>(StorageDType::kF8E4M3, {1}),
                                                      stored<uint8_t>(StorageDType::kBool, {1}),
                                                      stored<uint16_t>(StorageDType::kF16, {1})}},
                                         StorageDType::kF16, overflowed);
  std::vector<StorageDType> types;
  for (const NamedTensor& tensor : cast.tensors) types.push_back(tensor.info.dtype);
  CHECK(types == std::vector<StorageDType>{StorageDType::kF32, StorageDType::kI64,
                                           StorageDType::kF8E4M3, StorageDType::kBool,
                                           StorageDType::kF16});
}

TEST_CASE("bf16 becomes f32 exactly, NaNs included", "[ckpt]") {
  std::vector<uint16_t> words(65536);
  for (size_t i = 0; i < words.size(); ++i) words[i] = uint16_t(i);
  const CastResult wide = cast_one(stored(StorageDType::kBF16, words), StorageDType::kF32);
  REQUIRE(wide.words.size() == 2 * words.size());
  size_t wrong = 0;
  for (size_t i = 0; i < words.size(); ++i)
    wrong += size_t(wide.words[2 * i] != 0 || wide.words[2 * i + 1] != words[i]);
  CHECK(wrong == 0);
  CHECK(wide.overflowed == 0);
}

}  // namespace gxp
