#include "lib/ckpt/tensor_views.h"

#include "lib/base/dtype.h"
#include "tests/catch.h"
#include "tests/ckpt/samples.h"

namespace gxp {
namespace {

template <class Word>
std::vector<Word> read_words(const NamedTensor& tensor, uint64_t begin, uint64_t count) {
  std::vector<Word> words(count);
  tensor.read(begin, memory_of(words));
  return words;
}

NamedTensor tensor_of(StorageDType dtype, const std::vector<uint16_t>& words) {
  return {{"t", Role::kWeight, dtype, {words.size()}}, [words](uint64_t begin, Memory out) {
            std::memcpy(out.data, words.data() + begin, out.bytes);
          }};
}

// All 65536 values of a type of 16 bits.
std::vector<uint16_t> all_words() {
  std::vector<uint16_t> words(65536);
  for (size_t i = 0; i < words.size(); ++i) words[i] = uint16_t(i);
  return words;
}

}  // namespace

TEST_CASE("any part of a transposed matrix is that of the matrix", "[ckpt]") {
  const uint64_t rows = GENERATE(0, 1, 2, 15, 16, 17, 37);
  const uint64_t columns = GENERATE(0, 1, 3, 16, 19);
  CAPTURE(rows, columns);
  const NamedTensor turned = transposed(counting_tensor("m", {rows, columns}));
  CHECK(turned.info.shape == std::vector<uint64_t>{columns, rows});
  const uint64_t count = rows * columns;
  for (uint64_t begin = 0; begin <= count; begin += 1 + begin / 5) {
    for (uint64_t length = 0; begin + length <= count; length += 1 + length / 3) {
      const auto words = read_words<float>(turned, begin, length);
      for (uint64_t i = 0; i < length; ++i) {
        const uint64_t place = begin + i;
        if (words[i] != float(place % rows * columns + place / rows)) FAIL("at " << place);
      }
    }
  }
}

TEST_CASE("a matrix of any element size is transposed", "[ckpt]") {
  const auto [dtype, bytes] = GENERATE(table<StorageDType, uint64_t>({{StorageDType::kU8, 1},
                                                                      {StorageDType::kBF16, 2},
                                                                      {StorageDType::kF32, 4},
                                                                      {StorageDType::kF64, 8}}));
  const uint64_t size = bytes;
  const NamedTensor matrix{{"m", Role::kWeight, dtype, {2, 3}}, [=](uint64_t begin, Memory out) {
                             for (size_t i = 0; i < out.bytes; ++i)
                               out.data[i] = std::byte(begin * size + i);
                           }};
  std::vector<uint8_t> expected;
  for (const uint64_t element : {0, 3, 1, 4, 2, 5}) {
    for (uint64_t i = 0; i < size; ++i) expected.push_back(uint8_t(element * size + i));
  }
  std::vector<uint8_t> found(expected.size());
  transposed(matrix).read(0, memory_of(found));
  CHECK(found == expected);
}

TEST_CASE("rows are read in the order that is asked for, in any parts", "[ckpt]") {
  const NamedTensor reversed =
      with_rows(counting_tensor("m", {5, 3}), [](uint64_t row) { return 4 - row; });
  const std::vector<float> whole = {12, 13, 14, 9, 10, 11, 6, 7, 8, 3, 4, 5, 0, 1, 2};
  for (uint64_t begin = 0; begin < whole.size(); ++begin) {
    for (uint64_t end = begin; end <= whole.size(); ++end)
      CHECK(read_words<float>(reversed, begin, end - begin) ==
            std::vector<float>(whole.begin() + long(begin), whole.begin() + long(end)));
  }
}

TEST_CASE("rows of heads are put in the order of their parts, and back", "[ckpt]") {
  const HeadParts sizes{.heads = 5, .parts = 3, .head_size = 2};
  const NamedTensor by_head = counting_tensor("m", {30, 2});
  const NamedTensor by_part = with_head_rows(by_head, sizes, HeadRows::kByPart);
  const auto values = read_words<float>(by_part, 0, 60);
  for (size_t row = 0; row < 30; ++row) {
    const size_t part = row / 10, head = row % 10 / 2;
    CHECK(values[row * 2] == float(((head * 3 + part) * 2 + row % 2) * 2));
  }
  CHECK(are_equal(with_head_rows(by_part, sizes, HeadRows::kByHead), by_head));
}

TEST_CASE("a number is added to each element in F32", "[ckpt]") {
  const NamedTensor more = plus(counting_tensor("m", {3, 2}, 0.5F), -1);
  CHECK(read_words<float>(more, 1, 4) == std::vector<float>{0.5, 1.5, 2.5, 3.5});
}

TEST_CASE("every value of 16 bits survives F32 and back", "[ckpt]") {
  const StorageDType dtype = GENERATE(StorageDType::kBF16, StorageDType::kF16);
  const auto words = all_words();
  const NamedTensor wide = widened(tensor_of(dtype, words));
  CHECK(wide.info.dtype == StorageDType::kF32);
  CHECK(read_words<uint16_t>(narrowed(wide, dtype), 0, words.size()) == words);
  CHECK(read_words<float>(wide, 0x3c00, 1).front() ==
        (dtype == StorageDType::kF16 ? 1 : 0.0078125f));
}

TEST_CASE("an F32 that was not narrow is not made narrow", "[ckpt]") {
  const StorageDType dtype = GENERATE(StorageDType::kBF16, StorageDType::kF16);
  const NamedTensor tensor = narrowed(counting_tensor("norm", {3}, 1.00001f), dtype);
  const Caught caught = error_of([&] { read_words<uint16_t>(tensor, 2, 1); });
  CHECK(caught.kind == ErrorKind::kCorrupt);
  CHECK(caught.says("'norm': element 2"));
}

}  // namespace gxp
