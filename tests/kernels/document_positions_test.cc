// Positions in rows that hold several documents: each counts from its first token.
#include <algorithm>

#include "tests/documents.h"
#include "tests/kernels/backends.h"
#include "tests/kernels/rotary.h"

namespace gxp {
namespace {

struct PackedEmbedding {
  DocumentLengths lengths = random_lengths(3, kPositions, 17, 3);
  size_t channels, vocabulary = 7;

  static constexpr size_t kPositions = 40;
  static constexpr size_t kKnown = kPositions + 2;
  [[nodiscard]] Shape ids() const { return {3, kPositions}; }
  [[nodiscard]] Shape rows() const { return {3, kPositions, channels}; }
};

}  // namespace

TEST_CASE("rope turns each document of a row as a row of its own, and back", "[kernels]") {
  const auto kind = GENERATE(from_range(backend_kinds()));
  const size_t size = GENERATE(6, 16);
  CAPTURE(kind.name, size);
  TestBackend ops(kind);
  const DocumentLengths lengths = random_lengths(3, 60, 25, size);
  const Indices begins = begins_of(lengths);
  const Shape shape = {3, 60, 3 * size};
  const HeadColumns heads = {size, 2, size, size};
  const Rotary rotary = rotary_of(size, 1e4, 1.2);
  const float direction = GENERATE(1.0f, -1.0f);
  const Floats before = random_floats(shape.count(), 1);
  Floats packed = before;
  ops->rotate(tensor_of(packed, shape), heads, rotary, direction,
              {.document_begin = tensor_of(begins, {3, 60})});
  for (const DocumentPlace& place : places_of(lengths)) {
    const auto first = ptrdiff_t((place.row * 60 + place.begin) * 3 * size);
    const auto count = ptrdiff_t(place.length * 3 * size);
    Floats alone(before.begin() + first, before.begin() + first + count);
    ops->rotate(tensor_of(alone, {1, place.length, 3 * size}), heads, rotary, direction);
    CHECK(std::equal(alone.begin(), alone.end(), packed.begin() + first));
  }
}

TEST_CASE("an embedding counts positions from each document's first token", "[kernels]") {
  const auto kind = GENERATE(from_range(backend_kinds()));
  const PackedEmbedding e = {.channels = GENERATE(5, 16)};
  CAPTURE(kind.name, e.channels);
  TestBackend ops(kind);
  const Indices begins = begins_of(e.lengths), tokens = random_indices(120, 1, e.vocabulary);
  const Floats by_token = random_floats(e.vocabulary * e.channels, 2);
  const Floats by_position = random_floats(e.kKnown * e.channels, 3);
  Floats out(e.rows().count());
  ops->embedding_forward(tensor_of(out, e.rows()), tensor_of(tokens, e.ids()),
                         tensor_of(by_token, {e.vocabulary, e.channels}),
                         tensor_of(by_position, {e.kKnown, e.channels}),
                         tensor_of(begins, e.ids()));
  for (size_t i = 0; i < out.size(); ++i) {
    const size_t row = i / e.channels, position = row % e.kPositions - size_t(begins[row]);
    REQUIRE(out[i] == by_token[size_t(tokens[row]) * e.channels + i % e.channels] +
                          by_position[position * e.channels + i % e.channels]);
  }
}

TEST_CASE("embedding_backward adds each row to its position's in its document, in order",
          "[kernels]") {
  const auto kind = GENERATE(from_range(backend_kinds()));
  const PackedEmbedding e = {.channels = GENERATE(5, 16)};
  const bool trains_tokens = GENERATE(true, false);
  CAPTURE(kind.name, e.channels, trains_tokens);
  TestBackend ops(kind);
  const Indices begins = begins_of(e.lengths), tokens = random_indices(120, 1, e.vocabulary);
  const Floats dout = random_floats(e.rows().count(), 2);
  const auto run = [&](const ConstTensor& documents) {
    std::array<Floats, 2> tables = {random_floats(e.vocabulary * e.channels, 3),
                                    random_floats(e.kKnown * e.channels, 4)};
    ops->embedding_backward(
        trains_tokens ? tensor_of(tables[0], {e.vocabulary, e.channels}) : Tensor(),
        tensor_of(tables[1], {e.kKnown, e.channels}), tensor_of(dout, e.rows()),
        tensor_of(tokens, e.ids()), -1, documents);
    return tables;
  };
  Floats expected = random_floats(e.kKnown * e.channels, 4);
  for (size_t i = 0; i < dout.size(); ++i) {
    const size_t row = i / e.channels, position = row % e.kPositions - size_t(begins[row]);
    expected[position * e.channels + i % e.channels] += dout[i];
  }
  const auto [by_token, by_position] = run(tensor_of(begins, e.ids()));
  CHECK(by_position == expected);
  CHECK(by_token == run({})[0]);
}

}  // namespace gxp
