#include "lib/data/dataset.h"

#include <functional>
#include <span>

#include "lib/base/error.h"
#include "tests/catch.h"
#include "tests/data/token_samples.h"
#include "tests/error_of.h"

namespace gxp {
namespace {

using Tokens = std::vector<int32_t>;

struct Sample {
  Tokens tokens, targets;
};

Sample sample_at(const Dataset& data, uint64_t index) {
  Sample sample{Tokens(size_t(data.sequence())), Tokens(size_t(data.sequence()))};
  data.read(index, sample.tokens.data(), sample.targets.data());
  return sample;
}

}  // namespace

TEST_CASE("a stream is cut into windows that share one token", "[data]") {
  const TokenDirectory dir;
  const Dataset data({dir.write("a.txt", "abcdefghi")}, 4, 256);
  REQUIRE(data.sample_count() == 2);
  CHECK(sample_at(data, 0).tokens == Tokens{'a', 'b', 'c', 'd'});
  CHECK(sample_at(data, 0).targets == Tokens{'b', 'c', 'd', 'e'});
  CHECK(sample_at(data, 1).tokens == Tokens{'e', 'f', 'g', 'h'});
  CHECK(sample_at(data, 1).targets == Tokens{'f', 'g', 'h', 'i'});
}

TEST_CASE("a row of an i32 file is a sample as it is", "[data]") {
  const TokenDirectory dir;
  const Dataset data({dir.write("a.i32", counting_tokens(6))}, 2, 100);
  REQUIRE(data.sample_count() == 2);
  CHECK(sample_at(data, 1).tokens == Tokens{3, 4});
  CHECK(sample_at(data, 1).targets == Tokens{4, 5});
}

TEST_CASE("shards of 16 and 32 bits hold the same tokens", "[data]") {
  const TokenDirectory dir;
  const auto narrow =
      dir.write_shard("a.bin", {20240520, 1, 9}, counting_tokens<uint16_t>(9, 65000));
  const auto wide = dir.write_shard("b.bin", {20240801, 7, 9}, counting_tokens<uint32_t>(9, 65000));
  const Dataset data({narrow, wide}, 4, 65536);
  REQUIRE(data.sample_count() == 4);
  for (uint64_t i = 0; i < 2; ++i) {
    CHECK(sample_at(data, i).tokens == counting_tokens(4, 65000 + 4 * int(i)));
    CHECK(sample_at(data, i).targets == sample_at(data, i + 2).targets);
  }
}

TEST_CASE("a shard's tokens behind 4 GiB are read", "[data]") {
  const TokenDirectory dir;
  constexpr uint64_t kTokens = (uint64_t{1} << 31) + 4097;
  const std::string path =
      dir.write_shard("big.bin", {20240520, 1, int32_t(uint32_t(kTokens))}, Tokens{});
  std::filesystem::resize_file(path, 1024 + 2 * kTokens - 2);  // sparse
  std::ofstream(path, std::ios::binary | std::ios::app) << "\x07" << '\0';
  const Dataset data({path}, 4096, 8);
  CHECK(data.sample_count() == (kTokens - 1) / 4096);
  CHECK(sample_at(data, data.sample_count() - 1).targets.back() == 7);
}

TEST_CASE("lists keep their order, patterns and directories are sorted by name", "[data]") {
  const TokenDirectory dir;
  dir.write("b.txt", "bb");
  dir.write("a.txt", "aa");
  const auto first = dir.write("z.dat", "zz");
  const std::vector<std::vector<std::string>> lists = {{first, dir / "*.txt"},
                                                       {first, dir / "a.txt", dir / "b.txt"}};
  for (const auto& list : lists) {
    const Dataset data(list, 1, 256);
    REQUIRE(data.sample_count() == 3);
    CHECK(sample_at(data, 0).tokens == Tokens{'z'});
    CHECK(sample_at(data, 1).tokens == Tokens{'a'});
    CHECK(sample_at(data, 2).tokens == Tokens{'b'});
  }
  CHECK(sample_at(Dataset({dir / ""}, 1, 256), 0).tokens == Tokens{'a'});
}

TEST_CASE("each unusable file has its own message", "[data]") {
  const TokenDirectory dir;
  struct Case {
    std::string path;
    ErrorKind kind;
    std::string words;
  };
  const std::vector<Case> cases = {
      {dir / "missing", ErrorKind::kIo, "No such file"},
      {dir / "*.none", ErrorKind::kConfig, "no file matches"},
      {"/dev/null", ErrorKind::kIo, "not a regular file"},
      {dir.write("empty", ""), ErrorKind::kCorrupt, "is empty"},
      {dir.write("short", "abcd"), ErrorKind::kConfig, "4 tokens, but one sample takes 5"},
      {dir.write("odd.i32", "abc"), ErrorKind::kCorrupt, "no whole number of int32"},
      {dir.write("cut.i32", counting_tokens(11)), ErrorKind::kCorrupt, "no whole number of rows"},
      {dir.write_shard("cut.bin", {20240520, 1, 10}, counting_tokens<uint16_t>(9)),
       ErrorKind::kCorrupt, "promises 10 tokens in 1044 bytes, the file has 1042"},
      {dir.write("head.bin", Tokens{20240801, 7, 1}), ErrorKind::kCorrupt, "header"},
      {dir.write_shard("v2.bin", {20240520, 2, 9}, counting_tokens<uint16_t>(9)),
       ErrorKind::kCorrupt, "version 2"},
      {dir.write_shard("v1.bin", {20240801, 1, 9}, counting_tokens<uint32_t>(9)),
       ErrorKind::kCorrupt, "version 1"},
  };
  for (const Case& each : cases) {
    CAPTURE(each.path);
    const auto [kind, text] = error_of([&] { Dataset({each.path}, 4, 256); });
    CHECK(kind == each.kind);
    CHECK_THAT(text, Catch::Matchers::Contains(each.words));
    CHECK_THAT(text, Catch::Matchers::Contains(each.path));
  }
  CHECK(error_of([] { Dataset({}, 4, 256); }).kind == ErrorKind::kConfig);
}

TEST_CASE("a token outside the vocabulary is named with its file, position and limit", "[data]") {
  const TokenDirectory dir;
  Tokens tokens = counting_tokens(10);
  const int bad = GENERATE(10, -1);
  tokens[9] = bad;
  const Dataset data({dir.write("a.i32", tokens)}, 4, 10);
  CHECK(sample_at(data, 0).targets.back() == 4);
  const auto [kind, text] = error_of([&] { sample_at(data, 1); });
  CHECK(kind == ErrorKind::kCorrupt);
  const auto expected = fmt::format("token {} at position 9 is outside the vocabulary of 10", bad);
  CHECK_THAT(text, Catch::Matchers::Contains(expected) && Catch::Matchers::Contains("a.i32"));
}

TEST_CASE("a file that is cut after it was opened is an error in the samples that it has lost",
          "[data]") {
  const TokenDirectory dir;
  const size_t other_files = GENERATE(0, 200);  // with them, none is kept open
  const std::string path = dir.write("a.txt", std::string(100000, 'x'));
  std::vector<std::string> paths(other_files, dir.write("b.txt", "xxxxxx"));
  paths.insert(paths.begin(), path);
  const Dataset data(paths, 5, 256);
  std::filesystem::resize_file(path, 8192);
  CHECK(sample_at(data, 1000).targets == Tokens(5, 'x'));
  const auto [kind, text] = error_of([&] { sample_at(data, 15000); });
  CHECK(kind == ErrorKind::kCorrupt);
  CHECK_THAT(text, Catch::Matchers::Contains(path) &&
                       Catch::Matchers::Contains("had 100000 when it was opened"));
  CHECK(error_of([&] { sample_at(data, 1638); }).kind == ErrorKind::kCorrupt);  // the edge
}

TEST_CASE("a 32-bit token above 2^31 is not mistaken for a small one", "[data]") {
  const TokenDirectory dir;
  const std::vector<uint32_t> tokens = {1, 2, 0x80000001u};
  const Dataset data({dir.write_shard("a.bin", {20240801, 7, 3}, tokens)}, 2, 1 << 30);
  CHECK_THAT(error_of([&] { sample_at(data, 0); }).message,
             Catch::Matchers::Contains("token 2147483649 at position 2"));
}

}  // namespace gxp
