#include "lib/ckpt/gguf/header.h"

#include "lib/ckpt/gguf/gguf.h"
#include "tests/catch.h"
#include "tests/ckpt/gguf_samples.h"
#include "tests/ckpt/samples.h"

namespace gxp {
namespace {

namespace t = gguf_type;

struct HostileGguf {
  std::string bytes;
  std::string words;  // that the message must have
};

// A file with these bytes between its head and its end: one key.
std::string one_key(const std::string& key) { return std::string(GgufBytes().head(0, 1)) + key; }
// A file with one tensor, of 8 bytes if it is right.
std::string one_tensor(const std::string& tensor) {
  std::string bytes = std::string(GgufBytes().head(1, 0)) + tensor;
  bytes.resize((bytes.size() + 31) / 32 * 32);
  return bytes + std::string(8, 'x');
}

std::vector<HostileGguf> hostile_keys() {
  std::string nested(GgufBytes().key("k", t::kArray));
  for (int i = 0; i < 100'000; ++i) nested += std::string(GgufBytes().array(t::kArray, 1));
  return {
      {one_key(GgufBytes().key("", t::kU8).number('1').number(uint64_t{0})), "a key has no name"},
      {one_key(GgufBytes().text(std::string(65536, 'k'))), "a key of 65536 bytes"},
      {one_key(GgufBytes().number(UINT64_MAX).number(uint64_t{0})),
       "a key of 18446744073709551615"},
      {one_key(GgufBytes().key("k", 13).number(uint64_t{0})), "unknown type 13"},
      {one_key(GgufBytes().key("k", t::kBool).number('\2')), "a bool is 2"},
      {one_key(GgufBytes().key("k", t::kF64).number(1.0f)), "truncated: 8 bytes"},
      {one_key(GgufBytes().key("k", t::kText).number(uint64_t{1} << 40)),
       "a text of 1099511627776"},
      {one_key(GgufBytes().key("k", t::kArray).array(t::kU8, UINT64_MAX)), "an array of 1844674"},
      {one_key(GgufBytes().key("k", t::kArray).array(t::kU64, 1 << 30)), "truncated: 8589934592"},
      {one_key(GgufBytes().key("k", t::kArray).array(t::kText, 1 << 30).text("a")), "truncated"},
      {one_key(GgufBytes().key("k", t::kArray).array(t::kText, 1).number(UINT64_MAX)), "truncated"},
      {one_key(GgufBytes().key("k", t::kArray).array(99, 1)), "unknown type 99"},
      {one_key(nested), "nested deeper than 8"},
      {GgufBytes().head(0, 2).u32("k", 1).u32("k", 2), "the key 'k' occurs twice"},
      {GgufBytes().head(0, 1).u32("split.count", 3), "one of a model's 3 files"},
      {one_key(GgufBytes().u32("general.alignment", 0)), "not a 32-bit power of two"},
      {one_key(GgufBytes().u32("general.alignment", 24)), "not a 32-bit power of two"},
      {one_key(GgufBytes().string("general.alignment", "32")), "not a 32-bit power of two"},
  };
}

std::vector<HostileGguf> hostile_tensors() {
  const auto named = [](std::string_view name) {
    return one_tensor(GgufBytes().tensor(name, {2}, 0, 0));
  };
  const std::string good = named("a");
  return {
      {named(""), "empty or holds a NUL"},
      {named(std::string_view("a\0b", 3)), "empty or holds a NUL"},
      {named(std::string(64, 'n')), "a tensor's name of 64 bytes"},
      {one_tensor(GgufBytes().tensor("a", {2, 1, 1, 1, 1}, 0, 0)), "has 5 dimensions"},
      {one_tensor(GgufBytes().text("a").number(UINT32_MAX)), "has 4294967295 dimensions"},
      {one_tensor(GgufBytes().tensor("a", {2}, 8, 0)), "'a' is of the quantized type Q8_0"},
      {one_tensor(GgufBytes().tensor("a", {2}, 4, 0)), "'a' is of the unknown type 4"},
      {one_tensor(GgufBytes().tensor("a", {uint64_t{1} << 32, uint64_t{1} << 32}, 24, 0)),
       "64 bits"},
      {one_tensor(GgufBytes().tensor("a", {uint64_t{1} << 62}, 0, 0)), "more than 64 bits"},
      {one_tensor(GgufBytes().tensor("a", {uint64_t{1} << 60}, 0, 0)),
       "truncated: tensor 'a' takes"},
      {one_tensor(GgufBytes().tensor("a", {3}, 0, 0)), "truncated: tensor 'a' takes 12 bytes"},
      {one_tensor(GgufBytes().tensor("a", {2}, 0, 4)), "begins at byte 4 of the data, expected 0"},
      {one_tensor(GgufBytes().tensor("a", {2}, 0, UINT64_MAX)), "expected 0"},
      {good + std::string(25, '\0'), "longer than its header says"},
      {GgufBytes().head(2, 0).tensor("a", {2}, 0, 0).tensor("a", {2}, 0, 32).align().data(40),
       "'a' occurs twice"},
      {GgufBytes().head(2, 0).tensor("a", {2}, 0, 0).tensor("b", {2}, 0, 0).align().data(40),
       "tensor 'b' begins at byte 0 of the data, expected 32"},
      {GgufBytes().head(2, 0).tensor("a", {2}, 0, 0).tensor("b", {2}, 0, 64).align().data(72),
       "tensor 'b' begins at byte 64"},
  };
}

std::vector<HostileGguf> hostile_heads() {
  return {{"GGUF", "truncated: 4 bytes"},
          {"GGML" + std::string(20, '\0'), "does not begin with \"GGUF\""},
          {GgufBytes().head(0, 0, 1), "version 1"},
          {GgufBytes().head(0, 0, 4), "version 4"},
          {GgufBytes().head(0, 0, 3u << 24), "little-endian"},
          {GgufBytes().head(UINT64_MAX, 0), "do not fit"},
          {GgufBytes().head(0, uint64_t{1} << 60).data(100), "do not fit"}};
}

}  // namespace

TEST_CASE("every hostile GGUF file is refused with its name and the fault", "[ckpt]") {
  const TemporaryDirectory dir;
  for (const auto& list : {hostile_heads(), hostile_keys(), hostile_tensors()}) {
    for (const HostileGguf& hostile : list) {
      CAPTURE(hostile.words);
      write_bytes(dir / "bad.gguf", hostile.bytes);
      const auto [kind, text] = error_of([&] { read_gguf(dir / "bad.gguf"); });
      CHECK(kind == ErrorKind::kCorrupt);
      CHECK_THAT(text, Catch::Matchers::Contains(dir / "bad.gguf") &&
                           Catch::Matchers::Contains(hostile.words));
    }
  }
}

TEST_CASE("a GGUF file cut anywhere is refused", "[ckpt]") {
  const TemporaryDirectory dir;
  const std::string whole = read_bytes(GXP_TEST_DATA "/ckpt/gguf/tiny.gguf");
  for (size_t length = 0; length < whole.size(); length += 1 + length / 16) {
    write_bytes(dir / "cut.gguf", whole.substr(0, length));
    CHECK(error_of([&] { read_gguf(dir / "cut.gguf"); }).kind == ErrorKind::kCorrupt);
  }
}

TEST_CASE("what GGUF allows and few files have is read", "[ckpt]") {
  const TemporaryDirectory dir;
  const std::vector<std::string> files = {
      GgufBytes().head(0, 0),
      GgufBytes().head(0, 0, 2),
      GgufBytes().head(0, 0).align(),
      one_tensor(GgufBytes().tensor("scalar of two", {1, 2, 1, 1}, 0, 0)),
      one_tensor(GgufBytes().tensor("scalar", {}, 28, 0)),
      one_tensor(GgufBytes().tensor("a", {2}, 0, 0)) + std::string(24, '\0'),  // padded
      GgufBytes().head(1, 1).u32("general.alignment", 8).tensor("a", {2}, 0, 0).align(8).data(8),
      GgufBytes().head(2, 0).tensor("none", {0, 7}, 0, 0).tensor("a", {1}, 0, 0).align().data(4),
      one_key(GgufBytes()
                  .key("k", t::kArray)
                  .array(t::kArray, 2)
                  .array(t::kU8, 3)
                  .data(3)
                  .array(t::kText, 1)
                  .text("")),
  };
  for (const std::string& bytes : files) {
    write_bytes(dir / "a.gguf", bytes);
    CAPTURE(bytes);
    CHECK_NOTHROW(digests(read_gguf(dir / "a.gguf")));
  }
}

}  // namespace gxp
