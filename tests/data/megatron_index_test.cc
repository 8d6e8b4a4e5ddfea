#include "lib/data/files/megatron_index.h"

#include <cstring>

#include "lib/data/files/token_file.h"
#include "tests/catch.h"
#include "tests/data/token_samples.h"
#include "tests/error_of.h"

namespace gxp {
namespace {

// The parts of an index, which may contradict each other.
struct IndexParts {
  std::string magic = std::string("MMIDIDX\0\0", 9);
  uint64_t version = 1;
  uint8_t type = 4;
  std::vector<int32_t> lengths = {2, 0, 3};
  std::vector<int64_t> begins = {0, 8, 8};
  std::vector<int64_t> documents = {0, 2, 2, 3};
  std::string modes = "";
  std::optional<uint64_t> sequences = {};
};

template <class T>
void append(std::string& bytes, const T* values, size_t count) {
  bytes.append(reinterpret_cast<const char*>(values), count * sizeof(T));
}

std::string bytes_of(const IndexParts& parts) {
  std::string bytes = parts.magic;
  const uint64_t sequences = parts.sequences.value_or(parts.lengths.size());
  const uint64_t documents = parts.documents.size();
  append(bytes, &parts.version, 1);
  append(bytes, &parts.type, 1);
  append(bytes, &sequences, 1);
  append(bytes, &documents, 1);
  append(bytes, parts.lengths.data(), parts.lengths.size());
  append(bytes, parts.begins.data(), parts.begins.size());
  append(bytes, parts.documents.data(), parts.documents.size());
  return bytes + parts.modes;
}

}  // namespace

TEST_CASE("an index of every type of integers gives tokens and documents", "[data]") {
  const TokenDirectory dir;
  const auto [type, bytes, is_signed] = GENERATE(table<uint8_t, unsigned, bool>(
      {{1, 1, false}, {2, 1, true}, {3, 2, true}, {4, 4, true}, {5, 8, true}, {8, 2, false}}));
  const auto width = int64_t(bytes);
  IndexParts parts{.type = type, .begins = {0, 2 * width, 2 * width}};
  parts.modes = GENERATE(values<std::string>({"", std::string(3, '\0')}));
  const std::string path = dir.write("a.idx", bytes_of(parts));
  const MegatronIndex index(path);
  CHECK(index.type().bytes == bytes);
  CHECK(index.type().is_signed == is_signed);
  CHECK(index.token_count() == 5);
  CHECK(index.data_path() == dir / "a.bin");
  std::vector<uint64_t> begins;
  for (uint64_t i = 0; i <= index.document_count(); ++i) begins.push_back(index.document_begin(i));
  CHECK(begins == std::vector<uint64_t>{0, 2, 2, 5});
  std::string ids;
  for (const int64_t id : {3, 1, 4, 1, 5}) ids.append(reinterpret_cast<const char*>(&id), bytes);
  const TokenFile file(dir.write("a.bin", ids));
  std::vector<int32_t> tokens(5);
  file.read(0, 5, 10, tokens.data());
  CHECK(tokens == std::vector<int32_t>{3, 1, 4, 1, 5});
}

TEST_CASE("an index whose parts do not fit together is refused", "[data]") {
  const TokenDirectory dir;
  const auto [parts, words] = GENERATE(table<IndexParts, std::string>(
      {{{.magic = std::string("TNTIDX\0\0\0", 9)}, "older kind"},
       {{.magic = "MMIDIDX\1\1"}, "does not begin with MMIDIDX"},
       {{.version = 2}, "version 2"},
       {{.type = 0}, "type 0"},
       {{.type = 9}, "type 9"},
       {{.type = 6}, "floating-point"},
       {{.type = 7}, "floating-point"},
       {{.lengths = {2, -1, 4}}, "sequence 1 has -1 tokens"},
       {{.lengths = {2, 1, 2}}, "sequence 2 begins at byte 8"},
       {{.begins = {4, 8, 8}}, "sequence 0 begins at byte 4"},
       {{.documents = {1, 2, 2, 3}}, "document 0 begins at sequence 1"},
       {{.documents = {0, 2, 1, 3}}, "document 2 begins at sequence 1"},
       {{.documents = {0, 2, 2, 4}}, "document 3 begins at sequence 4"},
       {{.documents = {0, 2}}, "1 sequences are in no document"},
       {{.documents = {}}, "0 entries of documents"},
       {{.modes = "x"}, "1 bytes follow"},
       {{.modes = std::string("\0\1\0", 3)}, "sequence 1 has mode 1"},
       {{.sequences = uint64_t{1} << 62}, "declares 4611686018427387904 sequences"},
       {{.sequences = ~uint64_t{0}}, "declares 18446744073709551615 sequences"}}));
  CAPTURE(words);
  const std::string path = dir.write("a.idx", bytes_of(parts));
  const auto [kind, message] = error_of([&] { MegatronIndex index(path); });
  CHECK(kind == ErrorKind::kCorrupt);
  CHECK_THAT(message, Catch::Matchers::Contains(words) && Catch::Matchers::Contains(path));
}

TEST_CASE("an index that is cut at any byte is refused", "[data]") {
  const TokenDirectory dir;
  const std::string whole = bytes_of({});
  for (size_t length = 0; length < whole.size(); ++length) {
    CAPTURE(length);
    const std::string path = dir.write("a.idx", whole.substr(0, length));
    CHECK(error_of([&] { MegatronIndex index(path); }).kind == ErrorKind::kCorrupt);
  }
}

}  // namespace gxp
