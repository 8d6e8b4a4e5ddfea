#include "lib/data/dataset.h"

#include <filesystem>
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
  Tokens tokens(size_t(data.sequence()) + 1), labels(tokens.size());
  data.read(index, tokens, labels);
  return {{tokens.begin(), tokens.end() - 1}, {labels.begin() + 1, labels.end()}};
}

// Two rows of three tokens, the ids and the labels.
const Tokens kLabelled = {7, 8, 9, 7, -100, 9, 4, 5, 6, -100, -100, -100};

}  // namespace

TEST_CASE("a stream is cut into windows that share one token", "[data]") {
  const TokenDirectory dir;
  const Dataset data = dataset_of({dir.write("a.txt", "abcdefghi")}, 4, 256);
  REQUIRE(data.sample_count() == 2);
  CHECK(sample_at(data, 0).tokens == Tokens{'a', 'b', 'c', 'd'});
  CHECK(sample_at(data, 0).targets == Tokens{'b', 'c', 'd', 'e'});
  CHECK(sample_at(data, 1).tokens == Tokens{'e', 'f', 'g', 'h'});
  CHECK(sample_at(data, 1).targets == Tokens{'f', 'g', 'h', 'i'});
}

TEST_CASE("a directory is the files in it that are not hidden", "[data]") {
  const TokenDirectory dir;
  dir.write("b.txt", "bcdef");
  dir.write("a.txt", "abcde");
  dir.write(".hidden.txt", "hidden");
  std::filesystem::create_directory(dir / ".cache");
  const Dataset data = dataset_of({dir.path()}, 4, 256);
  REQUIRE(data.sample_count() == 2);
  CHECK(sample_at(data, 0).tokens == Tokens{'a', 'b', 'c', 'd'});
  CHECK(sample_at(data, 1).tokens == Tokens{'b', 'c', 'd', 'e'});
  std::filesystem::create_directory(dir / "more");
  const Caught caught = error_of([&] { dataset_of({dir.path()}, 4, 256); });
  CHECK(caught.kind == ErrorKind::kConfig);
  CHECK(caught.says("has the directory more, whose files would be left out"));
}

TEST_CASE("a row of an i32 file is a sample as it is", "[data]") {
  const TokenDirectory dir;
  const Dataset data = dataset_of({dir.write("a.i32", counting_tokens(6))}, 2, 100);
  REQUIRE(data.sample_count() == 2);
  CHECK(sample_at(data, 1).tokens == Tokens{3, 4});
  CHECK(sample_at(data, 1).targets == Tokens{4, 5});
}

TEST_CASE("shards of 16 and 32 bits hold the same tokens", "[data]") {
  const TokenDirectory dir;
  const auto narrow =
      dir.write_shard("a.bin", {20240520, 1, 9}, counting_tokens<uint16_t>(9, 65000));
  const auto wide = dir.write_shard("b.bin", {20240801, 7, 9}, counting_tokens<uint32_t>(9, 65000));
  const Dataset data = dataset_of({narrow, wide}, 4, 65536);
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
  const Dataset data = dataset_of({path}, 4096, 8);
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
    const Dataset data = dataset_of(list, 1, 256);
    REQUIRE(data.sample_count() == 3);
    CHECK(sample_at(data, 0).tokens == Tokens{'z'});
    CHECK(sample_at(data, 1).tokens == Tokens{'a'});
    CHECK(sample_at(data, 2).tokens == Tokens{'b'});
  }
  CHECK(sample_at(dataset_of({dir / ""}, 1, 256), 0).tokens == Tokens{'a'});
}

TEST_CASE("an array of integers is a stream, or rows, in every type that holds tokens", "[data]") {
  const TokenDirectory dir;
  const int version = GENERATE(1, 2, 3);
  const auto type = GENERATE("|u1", "|i1", "<u2", "<i2", "<u4", "<i4", "<u8", "<i8");
  CAPTURE(version, type);
  const auto array = [&](const std::string& shape) {
    return dir.write_numpy(fmt::format("{}.npy", shape), type, shape, counting_tokens(9, 3),
                           version);
  };
  const Dataset stream = dataset_of({array("(9,)")}, 4, 256);
  REQUIRE(stream.sample_count() == 2);
  CHECK(sample_at(stream, 1).tokens == counting_tokens(4, 7));
  CHECK(sample_at(stream, 1).targets == counting_tokens(4, 8));
  const Dataset rows = dataset_of({array("(3, 3)")}, 2, 256);
  REQUIRE(rows.sample_count() == 3);
  CHECK(sample_at(rows, 1).tokens == counting_tokens(2, 6));
  CHECK_THAT(error_of([&] { dataset_of({array("(3, 3)")}, 4, 256); }).message,
             Catch::Matchers::Contains("its rows have 3 tokens, but one sample takes 5"));
}

TEST_CASE("rows with labels have the ids as tokens, and as targets the labels behind them",
          "[data]") {
  const TokenDirectory dir;
  const auto type = GENERATE("|i1", "<i2", "<i4", "<i8");
  const std::string rows = dir.write_numpy("a.npy", type, "(2, 2, 3)", kLabelled, 1);
  const Dataset data = dataset_of({dir.write("b.i32", counting_tokens(3)), rows}, 2, 10);
  REQUIRE(data.sample_count() == 3);
  CHECK(sample_at(data, 1).tokens == Tokens{7, 8});
  CHECK(sample_at(data, 1).targets == Tokens{kNoLabel, 9});
  CHECK(sample_at(data, 2).tokens == Tokens{4, 5});
  CHECK(sample_at(data, 2).targets == Tokens{kNoLabel, kNoLabel});
  for (uint64_t sample = 0; sample < 3; ++sample) CHECK(data.count_targets(sample) == 2 - sample);
}

TEST_CASE("a label that is neither its own token nor -100 is named, and so is any other token",
          "[data]") {
  const TokenDirectory dir;
  const auto [element, value, words] = GENERATE(table<size_t, int32_t, std::string>(
      {{9, 5, "label 5 at position 0 of row 1, where the token is 4"},
       {10, -1, "label -1 at position 1 of row 1, where the token is 5"},
       {11, 10, "label 10 at position 2 of row 1, where the token is 6"},
       {8, 10, "token 10 at position 2 of row 1 is outside the vocabulary of 10"},
       {6, -100, "token -100 at position 0 of row 1 is negative"}}));
  Tokens elements = kLabelled;
  elements[element] = value;
  const Dataset data =
      dataset_of({dir.write_numpy("a.npy", "<i4", "(2, 2, 3)", elements, 1)}, 2, 10);
  CHECK(sample_at(data, 0).tokens == Tokens{7, 8});
  const auto [kind, text] = error_of([&] { sample_at(data, 1); });
  CHECK(kind == ErrorKind::kCorrupt);
  CHECK_THAT(text, Catch::Matchers::Contains(words) && Catch::Matchers::Contains("a.npy"));
}

TEST_CASE("labels and rows are told by the fingerprint", "[data]") {
  const TokenDirectory dir;
  const std::string labels = dir.write_numpy("a.npy", "<i4", "(2, 2, 3)", kLabelled, 1);
  const std::string rows = dir.write_numpy("b.npy", "<i4", "(2, 3)", counting_tokens(6), 1);
  const std::string stream = dir.write_numpy("c.npy", "<i4", "(6,)", counting_tokens(6), 1);
  const auto prints = dataset_of({labels, rows, stream}, 2, 10).fingerprints();
  CHECK(prints[0].kind == ".npy with labels");
  CHECK(prints[1].kind == ".npy");
  CHECK(std::vector{prints[0].tokens, prints[1].tokens, prints[2].tokens} ==
        std::vector<uint64_t>{6, 6, 6});
  CHECK(std::vector{prints[0].rows, prints[1].rows, prints[2].rows} ==
        std::vector<uint64_t>{2, 2, 0});
}

TEST_CASE("an array's tokens have the sign of its type", "[data]") {
  const TokenDirectory dir;
  const auto [type, token] = GENERATE(table<std::string, int64_t>({{"|u1", 255},
                                                                   {"|i1", -1},
                                                                   {"<u2", 65535},
                                                                   {"<i2", -1},
                                                                   {"<u4", 4294967295},
                                                                   {"<i4", -1},
                                                                   {"<i8", -1}}));
  const Dataset data =
      dataset_of({dir.write_numpy("a.npy", type, "(5,)", {0, 1, 2, -1, 4}, 1)}, 4, 200);
  CHECK_THAT(error_of([&] { sample_at(data, 0); }).message,
             Catch::Matchers::Contains(fmt::format("token {} at position 3 is ", token)));
}

TEST_CASE("a file that is no text, shard, array or rows is refused as what it is", "[data]") {
  using namespace std::string_literals;
  const TokenDirectory dir;
  const std::string more(5000, 'x');
  const auto [name, content, words] = GENERATE_COPY(table<std::string, std::string, std::string>(
      {{"a.txt", "\xfd\x37zXZ\0"s + more, "compressed by xz"},
       {"a.txt", "BZh91AY&SY" + more, "compressed by bzip2"},
       {"a.txt", "PK\3\4" + more, "a zip archive"},
       {"a.txt", "PAR1\x15\x04" + more, "a Parquet table"},
       {"a.txt", "ARROW1\0\0"s + more, "an Arrow table"},
       {"a.txt", "\xff\xff\xff\xff\x10" + more, "an Arrow stream"},
       {"a.txt", "\x40\0\0\0\0\0\0\0{\"w\":{}}"s + more, "safetensors"},
       {"a.txt", "GGUF\3\0\0\0"s + more, "a GGUF model"},
       {"a.txt", "TNTIDX\0\0\1"s + more, "an index of the older kind (TNTIDX) of Megatron's"},
       {"a.txt", "\xff\xfeh\0i\0"s + more, "text in UTF-16"},
       {"a.parquet", more, "named .parquet"},
       {"a.txt.gz", more, "named .gz"},
       {"a.npy", more, "named .npy"},
       {"train.bin", more, "nanoGPT"},
       {"train.u16", more, "bare token ids"},
       {"tokens", "h\0e\0l\0l\0o\0"s, "not text: it has zero bytes"},
       {"tokens", more + "\0"s, "not text: it has zero bytes"},
       {"tokens", "\x01\x02\x03\x10" + std::string(90, 'x'), "control bytes"}}));
  CAPTURE(name, words);
  const std::string path = dir.write(name, content);
  const auto [kind, text] = error_of([&] { dataset_of({path}, 4, 256); });
  CHECK(kind == ErrorKind::kCorrupt);
  CHECK_THAT(text, Catch::Matchers::Contains(path) && Catch::Matchers::Contains(words) &&
                       Catch::Matchers::Contains("gxp reads text"));
}

TEST_CASE("text of any encoding is text, whatever word it begins with", "[data]") {
  const TokenDirectory dir;
  const std::string text = GENERATE("PAR1 is the magic", "GGUF files", "ARROW1 is", "%d of 5",
                                    "caf\xc3\xa9 \xe6\x97\xa5", "caf\xe9 en latin-1",
                                    "\xef\xbb\xbfmark", "a\tb\r\n\f\x1b[0m");
  CAPTURE(text);
  CHECK(dataset_of({dir.write("a", text)}, 2, 256).fingerprints()[0].kind == "text");
}

TEST_CASE("text is taken for a vocabulary of other than 256 tokens only if asked for", "[data]") {
  const TokenDirectory dir;
  const std::string path = dir.write("a.txt", "abcdefghi");
  const int vocabulary = GENERATE(255, 257, 50304);
  const auto [kind, text] = error_of([&] { dataset_of({path}, 4, vocabulary); });
  CHECK(kind == ErrorKind::kConfig);
  CHECK_THAT(text, Catch::Matchers::Contains("data.tokenizer: ") &&
                       Catch::Matchers::Contains("set \"byte\" if bytes are meant"));
  RunConfig bytes = run_of_rows(4, vocabulary);
  bytes.data.tokenizer = "byte";
  CHECK(dataset_of({path}, bytes).sample_count() == 2);
  CHECK(dataset_of({dir.write("a.i32", counting_tokens(5))}, 4, vocabulary).sample_count() == 1);
}

TEST_CASE("a fingerprint tells kind, sizes and a change at either end or in the middle", "[data]") {
  const TokenDirectory dir;
  const auto print = [&](const std::string& content) {
    return dataset_of({dir.write("a.txt", content)}, 4, 256).fingerprints().at(0);
  };
  const size_t size = GENERATE(5, 4096, 4097, 262144);
  std::string content(size, 'x');
  const DataFingerprint before = print(content);
  CHECK(before.bytes == size);
  CHECK(before.tokens == size);
  CHECK(before.hash == print(content).hash);
  for (const size_t place : {size_t{0}, size / 2, size - 1}) {
    std::string other = content;
    other[place] = 'y';
    CHECK(print(other).hash != before.hash);
  }
  CHECK(print(std::string(5000000, 'x')).hash != before.hash);
}

TEST_CASE("each unusable file has its own message", "[data]") {
  using namespace std::string_literals;
  const TokenDirectory dir;
  const auto numpy = [&](const std::string& type, const std::string& shape) {
    return dir.write_numpy(fmt::format("{}{}.npy", int(type[0]), shape), type, shape,
                           counting_tokens(9), 1);
  };
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
      {dir.write("odd.i32", "abc"), ErrorKind::kCorrupt, "the size of an int32 token"},
      {dir.write("cut.i32", counting_tokens(11)), ErrorKind::kCorrupt, "the row length"},
      {dir.write_shard("cut.bin", {20240520, 1, 10}, counting_tokens<uint16_t>(9)),
       ErrorKind::kCorrupt, "declares 10 tokens in 1044 bytes, the file has 1042"},
      {dir.write("head.bin", Tokens{20240801, 7, 1}), ErrorKind::kCorrupt, "header"},
      {dir.write_shard("v2.bin", {20240520, 2, 9}, counting_tokens<uint16_t>(9)),
       ErrorKind::kCorrupt, "version 2"},
      {dir.write_shard("v1.bin", {20240801, 1, 9}, counting_tokens<uint32_t>(9)),
       ErrorKind::kCorrupt, "version 1"},
      {numpy("<f4", "(9,)"), ErrorKind::kCorrupt, "an array of type '<f4'"},
      {numpy(">u2", "(9,)"), ErrorKind::kCorrupt, "an array of type '>u2'"},
      {numpy("<u2", "()"), ErrorKind::kCorrupt, "an array of 0 dimensions"},
      {numpy("<u2", "(3, 3, 1)"), ErrorKind::kCorrupt, "an array of 3 dimensions"},
      {numpy("<i4", "(1, 1, 9)"), ErrorKind::kCorrupt, "three (rows, 2, length)"},
      {numpy("<i4", "(1, 2, 3, 1)"), ErrorKind::kCorrupt, "an array of 4 dimensions, (1, 2, 3, 1)"},
      {numpy("<u4", "(1, 2, 5)"), ErrorKind::kCorrupt,
       "labels of type '<u4', which cannot be -100"},
      {numpy("<i4", "(1, 2, 4)"), ErrorKind::kCorrupt, "declares (1, 2, 4) elements of 4 bytes"},
      {numpy("<i4", "(2, 2, 2)"), ErrorKind::kCorrupt, "but 36 bytes follow"},
      {numpy("<i4", "(1, 2, 0)"), ErrorKind::kCorrupt, "declares"},
      {numpy("<i4", "(1, 2, 9223372036854775808)"), ErrorKind::kCorrupt, "declares"},
      {dir.write_numpy("short.npy", "<i4", "(2, 2, 3)", kLabelled, 1), ErrorKind::kConfig,
       "its rows have 3 tokens, but one sample takes 5"},
      {numpy("<u2", "(10,)"), ErrorKind::kCorrupt, "declares (10) elements of 2 bytes"},
      {numpy("<u2", "(8,)"), ErrorKind::kCorrupt, "but 18 bytes follow"},
      {numpy("<u2", "(18446744073709551615, 9)"), ErrorKind::kCorrupt, "declares"},
      {numpy("<u2", "(9, 0)"), ErrorKind::kCorrupt, "declares"},
      {numpy("<u2", "9"), ErrorKind::kCorrupt, "has no shape"},
      {dir.write("records.npy", "\x93NUMPY\1"s + "\0\x20\0{'descr': [('a', '<u2')]         "s),
       ErrorKind::kCorrupt, "holds records"},
      {dir.write("cut.npy", "\x93NUMPY\1\0\x76\0{'descr'"s), ErrorKind::kCorrupt, "is truncated"},
  };
  for (const Case& each : cases) {
    CAPTURE(each.path);
    const auto [kind, text] = error_of([&] { dataset_of({each.path}, 4, 256); });
    CHECK(kind == each.kind);
    CHECK_THAT(text, Catch::Matchers::Contains(each.words));
    CHECK_THAT(text, Catch::Matchers::Contains(each.path));
  }
  CHECK(error_of([] { dataset_of({}, 4, 256); }).kind == ErrorKind::kConfig);
}

TEST_CASE("a token outside the vocabulary is named with its file, position and limit", "[data]") {
  const TokenDirectory dir;
  Tokens tokens = counting_tokens(10);
  const int bad = GENERATE(10, -1);
  tokens[9] = bad;
  const Dataset data = dataset_of({dir.write("a.i32", tokens)}, 4, 10);
  CHECK(sample_at(data, 0).targets.back() == 4);
  const auto [kind, text] = error_of([&] { sample_at(data, 1); });
  CHECK(kind == ErrorKind::kCorrupt);
  const auto expected = fmt::format("token {} at position 9 is {}", bad,
                                    bad < 0 ? "negative" : "outside the vocabulary of 10");
  CHECK_THAT(text, Catch::Matchers::Contains(expected) && Catch::Matchers::Contains("a.i32"));
}

TEST_CASE("a file that is cut after it was opened is an error in the samples that it has lost",
          "[data]") {
  const TokenDirectory dir;
  const size_t other_files = GENERATE(0, 200);  // with them, none is kept open
  const std::string path = dir.write("a.txt", std::string(100000, 'x'));
  std::vector<std::string> paths(other_files, dir.write("b.txt", "xxxxxx"));
  paths.insert(paths.begin(), path);
  const Dataset data = dataset_of(paths, 5, 256);
  std::filesystem::resize_file(path, 8192);
  CHECK(sample_at(data, 1000).targets == Tokens(5, 'x'));
  const auto [kind, text] = error_of([&] { sample_at(data, 15000); });
  CHECK(kind == ErrorKind::kCorrupt);
  CHECK_THAT(text, Catch::Matchers::Contains(path) &&
                       Catch::Matchers::Contains("had 100000 bytes when it was opened"));
  CHECK(error_of([&] { sample_at(data, 1638); }).kind == ErrorKind::kCorrupt);  // the edge
}

TEST_CASE("a 32-bit token above 2^31 is not mistaken for a small one", "[data]") {
  const TokenDirectory dir;
  const std::vector<uint32_t> tokens = {1, 2, 0x80000001u};
  const Dataset data = dataset_of({dir.write_shard("a.bin", {20240801, 7, 3}, tokens)}, 2, 1 << 30);
  CHECK_THAT(error_of([&] { sample_at(data, 0); }).message,
             Catch::Matchers::Contains("token 2147483649 at position 2"));
}

}  // namespace gxp
