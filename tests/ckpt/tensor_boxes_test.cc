#include "lib/ckpt/tensor_boxes.h"

#include <random>

#include "tests/catch.h"
#include "tests/ckpt/samples.h"

namespace gxp {
namespace {

using Catch::Matchers::Contains;
using Sizes = std::vector<uint64_t>;

// The whole in `parts` or more boxes: cuts made at random, also ones that leave nothing.
std::vector<TensorBox> cut(const Sizes& shape, size_t parts, std::mt19937& random) {
  std::vector<TensorBox> boxes = {{Sizes(shape.size(), 0), shape}};
  while (boxes.size() < parts) {
    TensorBox& box = boxes[random() % boxes.size()];
    const size_t axis = random() % shape.size();
    TensorBox rest = box;
    box.sizes[axis] = random() % (box.sizes[axis] + 1);
    rest.offsets[axis] += box.sizes[axis];
    rest.sizes[axis] -= box.sizes[axis];
    boxes.push_back(rest);
  }
  return boxes;
}

uint64_t index_in(const Sizes& shape, const Sizes& place) {
  uint64_t index = 0;
  for (size_t k = 0; k < shape.size(); ++k) index = index * shape[k] + place[k];
  return index;
}

// What a box has of a tensor whose elements are their row-major indices.
NamedTensor part_of(const Sizes& shape, const TensorBox& box) {
  NamedTensor part = counting_tensor("part", box.sizes);
  const auto values = std::make_shared<std::vector<float>>();  // owner: the reader
  for (uint64_t i = 0; i < part.info.count(); ++i) {
    Sizes place = box.offsets;
    uint64_t rest = i;
    for (size_t k = shape.size(); k-- > 0; rest /= box.sizes[k]) place[k] += rest % box.sizes[k];
    values->push_back(float(index_in(shape, place)));
  }
  part.read = [values](uint64_t begin, Memory out) {
    REQUIRE(begin + out.bytes / sizeof(float) <= values->size());
    std::memcpy(out.data, values->data() + begin, out.bytes);
  };
  return part;
}

struct BadTiling {
  Sizes shape;
  std::vector<TensorBox> boxes;
  std::string words;
};

constexpr uint64_t kHuge = uint64_t{1} << 63;

const std::vector<BadTiling> kBadTilings = {
    {{4}, {}, "4 of its 4 elements are in no chunk"},
    {{4}, {{{0}, {3}}}, "1 of its 4 elements"},
    {{4}, {{{0}, {3}}, {{2}, {2}}}, "chunk at (2) of size (2) overlaps the one at (0) of size (3)"},
    {{4}, {{{0}, {4}}, {{0}, {4}}}, "overlaps"},
    {{4}, {{{0}, {2}}, {{2}, {3}}}, "(2) of size (3) reaches beyond the tensor's shape (4)"},
    {{4}, {{{5}, {0}}}, "reaches beyond"},
    {{4}, {{{2}, {~uint64_t{0}}}}, "reaches beyond"},
    {{4}, {{{0, 0}, {4, 1}}}, "does not have the tensor's 1 axes"},
    {{4}, {{{0}, {}}}, "does not have the tensor's 1 axes"},
    {{}, {}, "1 of its 1 elements"},
    {{}, {{{}, {}}, {{}, {}}}, "overlaps"},
    {{2, 2}, {{{0, 0}, {2, 1}}, {{0, 1}, {1, 1}}, {{0, 1}, {1, 1}}}, "overlaps"},
    {{3, 3}, {{{0, 0}, {2, 2}}, {{1, 1}, {2, 2}}}, "overlaps"},
    {{2, 2}, {{{0, 0}, {1, 1}}, {{1, 1}, {1, 1}}}, "2 of its 4 elements"},
    {{kHuge, 2}, {}, "exceeds 64 bits"},
};

}  // namespace

TEST_CASE("boxes that tile a tensor give its elements, in any range", "[ckpt]") {
  const Sizes shape =
      GENERATE(Sizes{1}, Sizes{97}, Sizes{13, 6}, Sizes{5, 1, 7}, Sizes{3, 4, 2, 5});
  const size_t parts = GENERATE(1, 2, 3, 8, 40);
  std::mt19937 random(parts);
  const auto boxes = cut(shape, parts, random);
  CHECK_NOTHROW(check_tiling(shape, boxes, "x"));
  std::vector<BoxPart> list;
  for (const TensorBox& box : boxes) list.push_back({box, part_of(shape, box)});
  const NamedTensor whole = join_boxes({"w", Role::kWeight, StorageDType::kF32, shape}, list);
  for (uint64_t begin = 0; begin < whole.info.count(); ++begin) {
    std::vector<float> values(1 + random() % (whole.info.count() - begin));
    std::vector<float> expected(values.size());
    for (size_t i = 0; i < values.size(); ++i) expected[i] = float(begin + i);
    whole.read(begin, memory_of(values));
    CHECK(values == expected);
  }
}

TEST_CASE("rows in many columns' boxes are gathered through a bounded buffer", "[ckpt]") {
  const Sizes shape = {4099, 300};
  std::vector<BoxPart> list;
  for (uint64_t column = 0; column < 300; column += 100) {
    const TensorBox box{{0, column}, {4099, 100}};
    list.push_back({box, part_of(shape, box)});
  }
  const NamedTensor whole = join_boxes({"w", Role::kWeight, StorageDType::kF32, shape}, list);
  CHECK(sha256_hex(whole) == sha256_hex(counting_tensor("w", shape)));
}

TEST_CASE("boxes that do not tile a tensor are refused with the fault", "[ckpt]") {
  for (const BadTiling& bad : kBadTilings) {
    CAPTURE(bad.words);
    const auto error = error_of([&] { check_tiling(bad.shape, bad.boxes, "read f"); });
    CHECK(error.kind == ErrorKind::kCorrupt);
    CHECK_THAT(error.message, Contains("read f: ") && Contains(bad.words));
  }
}

TEST_CASE("comparing boxes takes bounded time", "[ckpt]") {
  std::vector<TensorBox> rows, diagonal;
  constexpr uint64_t kCount = 50000;
  for (uint64_t i = 0; i < kCount; ++i) {
    rows.push_back({{i, 0}, {1, kCount}});
    diagonal.push_back({{i, kCount - 1 - i}, {kCount - i, 1}});
  }
  CHECK_NOTHROW(check_tiling({kCount, kCount}, rows, "x"));
  CHECK_THAT(error_of([&] {
               check_tiling({kCount, kCount}, diagonal, "x");
             }).message,
             Contains("too many different ways"));
}

}  // namespace gxp
