// Attention of rows that hold several documents: each as in a row of its own.
#include <algorithm>

#include "tests/combinations.h"
#include "tests/documents.h"
#include "tests/kernels/grouped_run.h"

namespace gxp {
namespace {

constexpr size_t kRowPositions = 150;

// `values` of positions of some width: those of one document, or of a head's sums.
Floats part_of(const Floats& values, size_t first, size_t count, size_t width) {
  const auto begin = values.begin() + ptrdiff_t(first * width);
  return {begin, begin + ptrdiff_t(count * width)};
}

// A document alone: the packed run's numbers in a row of its own, and what was made of them there.
struct DocumentRun {
  DocumentRun(const GroupedRun& packed, const DocumentPlace& place)
      : run({1, place.length, packed.s.heads, packed.s.head_size}, packed.kv_heads, packed.kind),
        found(run) {
    const size_t first = place.row * packed.s.positions + place.begin;
    const auto own = [&](const HalfArray& all) {
      const Floats values = all.floats();
      return HalfArray(part_of(values, first, place.length, values.size() / packed.rows()),
                       packed.kind.dtype);
    };
    run.queries = own(packed.queries);
    run.keys = own(packed.keys);
    run.values = own(packed.values);
    run.dout = own(packed.dout);
    found = run;
    found.out = own(packed.out);
    found.dqueries = own(packed.dqueries);
    found.dkeys = own(packed.dkeys);
    found.dvalues = own(packed.dvalues);
    found.lse.clear();
    for (size_t head = 0; head < packed.s.heads; ++head) {
      const size_t row = (place.row * packed.s.heads + head) * packed.s.positions;
      const Floats sums = part_of(packed.lse, row + place.begin, place.length, 1);
      found.lse.insert(found.lse.end(), sums.begin(), sums.end());
    }
  }
  GroupedRun run, found;
};

// As half_attention_test.cc has it, for scores of up to 4.
double allowed_alone(const GroupedRun& run, bool of_gradients) {
  const size_t sharing = run.s.heads / run.kv_heads;
  const double terms = double(run.s.positions + 2 * run.s.head_size);
  const double sums =
      of_gradients ? roundings(size_t(double(sharing) * terms), 24) : roundings(size_t(terms), 12);
  if (run.kind.dtype == DType::kF32) return sums;
  const double unit = (run.kind.dtype == DType::kBF16 ? 0x1p-8 : 0x1p-11) /
                      double(std::numeric_limits<float>::epsilon());
  return sums + (of_gradients ? 5 * unit * std::sqrt(double(sharing)) : 2 * unit);
}

void check_is_the_oracles_alone(const GroupedRun& run) {
  const GroupedOracle expected(run);
  CHECK(distance_in_eps(run.out.floats(), expected.forward.out, 1) < allowed_alone(run, false));
  CHECK(distance_in_eps(run.lse, expected.forward.lse, 1) <
        roundings(run.s.positions + run.s.head_size, 12));
  for (size_t i = 0; i < 3; ++i)
    CHECK(distance_in_eps(run.gradients()[i], expected.gradients[i], 1) < allowed_alone(run, true));
}

struct PackedHeads {
  DType dtype;
  size_t size, kv;
  HeadLayout layout;
};
const std::vector<PackedHeads> kPackedHeads = {
    {DType::kF32, 20, 2, HeadLayout::kPerHead},   {DType::kF32, 64, 1, HeadLayout::kBlocks},
    {DType::kBF16, 64, 1, HeadLayout::kSeparate}, {DType::kF16, 96, 2, HeadLayout::kBlocks},
    {DType::kBF16, 128, 2, HeadLayout::kPerHead}, {DType::kF16, 20, 1, HeadLayout::kSeparate}};
// A scale that is no larger than the default of any of these sizes.
const std::vector<AttentionScores> kPackedScores = {
    {}, {.scale = 0.08f, .window = 1}, {.scale = 0.08f, .cap = 0.5f}, {.cap = 30, .window = 33}};

GroupedRun run_of_documents(const PackedHeads& heads, const AttentionScores& scores,
                            const DocumentLengths& lengths) {
  GroupedRun run({lengths.size(), kRowPositions, 2, heads.size}, heads.kv,
                 {.dtype = heads.dtype, .scores = scores, .layout = heads.layout});
  run.document_begin = begins_of(lengths);
  return run;
}

}  // namespace

TEST_CASE("attention of each document in packed rows is the oracle's of that document alone",
          "[kernels]") {
  const std::vector<DocumentLengths> packings = {{{kRowPositions}, {1, 149}},
                                                 {{64, 1, 63, 22}, {63, 2, 64, 20, 1}},
                                                 random_lengths(2, kRowPositions, 100, 1),
                                                 random_lengths(2, kRowPositions, 9, 2)};
  const auto [kind, heads, scores, lengths] = GENERATE_COPY(
      from_range(combinations(attention_kinds(), kPackedHeads, kPackedScores, packings)));
  CAPTURE(kind.name, to_string(heads.dtype), heads.size, heads.kv, scores.window, scores.cap,
          lengths);
  TestBackend ops(kind);
  GroupedRun packed = run_of_documents(heads, scores, lengths);
  packed.run(ops);
  for (const DocumentPlace& place : places_of(lengths)) {
    CAPTURE(place.row, place.begin, place.length);
    check_is_the_oracles_alone(DocumentRun(packed, place).found);
  }
}

TEST_CASE("a document that begins at a multiple of 64 positions has the bits that it has alone",
          "[kernels]") {
  const DocumentLengths lengths = {{1, 63, 70, 16}};
  const auto [kind, heads, scores] = GENERATE_COPY(
      from_range(combinations(of_one_thread(backend_kinds()), kPackedHeads, kPackedScores)));
  CAPTURE(kind.name, to_string(heads.dtype), heads.size, heads.kv, scores.window, scores.cap);
  TestBackend ops(kind);
  GroupedRun packed = run_of_documents(heads, scores, lengths);
  packed.run(ops);
  for (const DocumentPlace& place : places_of(lengths)) {
    if (place.begin % 64 != 0) continue;
    CAPTURE(place.row, place.begin, place.length);
    DocumentRun document(packed, place);
    document.run.run(ops);
    CHECK(document.found.out.floats() == document.run.out.floats());
    CHECK(document.found.lse == document.run.lse);
    CHECK(document.found.gradients() == document.run.gradients());
  }
}

TEST_CASE("no document's attention depends on another document of its row", "[kernels]") {
  const auto [kind, heads] =
      GENERATE_COPY(from_range(combinations(of_one_thread(attention_kinds()), kPackedHeads)));
  CAPTURE(kind.name, to_string(heads.dtype), heads.size);
  const DocumentLengths lengths = {{50, 70, 30}};
  TestBackend ops(kind);
  GroupedRun packed = run_of_documents(heads, {}, lengths), changed = packed;
  for (HalfArray* array : {&changed.queries, &changed.keys, &changed.values, &changed.dout}) {
    Floats values = array->floats();
    const size_t width = values.size() / kRowPositions;
    std::fill_n(values.begin(), 50 * width, 9.0f);
    std::fill(values.begin() + ptrdiff_t(120 * width), values.end(), -9.0f);
    *array = HalfArray(values, heads.dtype);
  }
  for (GroupedRun* each : {&packed, &changed}) each->run(ops);
  const DocumentPlace middle = places_of(lengths)[1];
  const DocumentRun a(packed, middle), b(changed, middle);
  CHECK(a.found.out.floats() == b.found.out.floats());
  CHECK(a.found.lse == b.found.lse);
  CHECK(a.found.gradients() == b.found.gradients());
}

TEST_CASE("rows of one document each have the bits of rows without documents", "[kernels]") {
  const auto [kind, heads, scores] = GENERATE_COPY(
      from_range(combinations(of_one_thread(backend_kinds()), kPackedHeads, kPackedScores)));
  CAPTURE(kind.name, to_string(heads.dtype), heads.size, scores.window, scores.cap);
  TestBackend ops(kind);
  GroupedRun packed = run_of_documents(heads, scores, {{kRowPositions}, {kRowPositions}}),
             plain = packed;
  plain.document_begin.clear();
  for (GroupedRun* each : {&packed, &plain}) each->run(ops);
  CHECK(packed.out.floats() == plain.out.floats());
  CHECK(packed.lse == plain.lse);
  CHECK(packed.gradients() == plain.gradients());
}

}  // namespace gxp
