#include "lib/base/hash.h"

#include <string_view>

#include "tests/catch.h"

namespace gxp {
namespace {

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

}  // namespace

TEST_CASE("the hash of nothing is XXH3's published value", "[base]") {
  CHECK(hash_hex({}) == "99aa06d3014798d86001c324468d497f");
  CHECK(hash64({}) == 0x2d06800538d394c2u);
}

TEST_CASE("a hash does not depend on how the data is cut", "[base]") {
  const std::string text(5000, 'x');
  const size_t cut = GENERATE(0, 1, 239, 4096, 5000);
  Hasher hasher;
  hasher.update(bytes_of(text).first(cut));
  hasher.update(bytes_of(text).subspan(cut));
  CHECK(hasher.hex() == hash_hex(bytes_of(text)));
}

TEST_CASE("one changed bit changes the hash", "[base]") {
  CHECK(hash_hex(bytes_of("gxp0")) != hash_hex(bytes_of("gxp1")));
}

}  // namespace gxp
