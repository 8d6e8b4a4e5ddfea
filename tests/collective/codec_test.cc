#include "lib/collective/compress/codec.h"

#include <cmath>
#include <set>

#include "tests/catch.h"

namespace gxp {
namespace {

// Values of mixed magnitude.
std::vector<float> rough_floats(int number, size_t count) {
  std::vector<float> values(count);
  for (size_t i = 0; i < count; ++i) {
    const double seed = double(i + 1) * (number + 1.7);
    values[i] = float(std::sin(seed) * std::exp2(std::fmod(seed * 3.1, 12.0)));
  }
  return values;
}

std::vector<std::byte> encoded_by(const Codec& codec, const float* x, size_t count) {
  std::vector<std::byte> bytes(codec.wire_bytes(count));
  encode(bytes.data(), x, count, codec.format);
  return bytes;
}

TEST_CASE("every codec is found by its name, and no other name is one", "[collective]") {
  std::set<std::string_view> names;
  for (const Codec& codec : codecs()) {
    CHECK(find_codec(codec.name) == &codec);
    CHECK(names.insert(codec.name).second);
  }
  CHECK(find_codec("int7") == nullptr);
}

TEST_CASE("a codec's error is below its bound times the largest value around", "[collective]") {
  for (const Codec& codec : codecs()) {
    const std::vector<float> x = rough_floats(1, 1009);
    const auto bytes = encoded_by(codec, x.data(), x.size());
    std::vector<float> decoded(x.size());
    decode(decoded.data(), bytes.data(), x.size(), codec.format);
    size_t wrong = 0;
    for (size_t i = 0; i < x.size(); ++i) {
      const size_t begin = i / kCodecBlock * kCodecBlock;
      float largest = 0;
      for (size_t j = begin; j < std::min(x.size(), begin + kCodecBlock); ++j)
        largest = std::max(largest, std::abs(x[j]));
      wrong += std::abs(x[i] - decoded[i]) > codec.error * double(largest);
    }
    CAPTURE(codec.name);
    CHECK(wrong == 0);
  }
}

TEST_CASE("parts of whole blocks, end to end, are the encoded whole", "[collective]") {
  for (const Codec& codec : codecs()) {
    const std::vector<float> x = rough_floats(2, 5 * kCodecBlock + 3);
    std::vector<std::byte> parts = encoded_by(codec, x.data(), 2 * kCodecBlock);
    const auto rest = encoded_by(codec, x.data() + 2 * kCodecBlock, x.size() - 2 * kCodecBlock);
    parts.insert(parts.end(), rest.begin(), rest.end());
    CAPTURE(codec.name);
    CHECK(parts == encoded_by(codec, x.data(), x.size()));
  }
}

}  // namespace
}  // namespace gxp
