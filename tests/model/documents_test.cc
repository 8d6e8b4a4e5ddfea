// Rows that hold several documents, in each family: losses and gradients of separate rows.
#include "tests/model/slopes.h"

namespace gxp {
namespace {

// The lengths of the documents of each row of six positions.
const std::vector<std::vector<size_t>> kPackedLengths = {{2, 1, 3}, {6}, {4, 2}};
constexpr size_t kRowPositions = 6;

// Documents as packed rows; and each at the start of a row of its own, whose rest does not count. The
// last token of each has no target.
struct Documents {
  explicit Documents(int vocabulary) {
    std::mt19937 random(2);
    std::uniform_int_distribution<int32_t> ids(0, vocabulary - 1);
    for (const std::vector<size_t>& row : kPackedLengths) {
      ++packed.rows;
      for (const size_t length : row) {
        const auto begin = int32_t(packed.tokens.size() % kRowPositions);
        packed.document_begin.insert(packed.document_begin.end(), length, begin);
        ++apart.rows;
        for (size_t i = 0; i < kRowPositions; ++i)
          add(ids(random), i + 1 < length ? ids(random) : -1, i < length);
      }
    }
  }

  SmallBatch packed = {0, kRowPositions, {}, {}}, apart = packed;

 private:
  void add(int32_t token, int32_t target, bool is_of_document) {
    for (SmallBatch* batch : {&packed, &apart}) {
      if (batch == &packed && !is_of_document) continue;
      batch->tokens.push_back(token);
      batch->targets.push_back(target);
    }
  }
};

std::vector<ModelConfig> first_of(std::initializer_list<std::string_view> names) {
  std::vector<ModelConfig> models;
  for (const std::string_view name : names) {
    for (const ModelConfig& model : small_models(find_family(name))) models.push_back(model);
  }
  return models;
}

TEST_CASE("each family's packed rows have the loss and the gradients of separate rows", "[model]") {
  const ModelConfig config = GENERATE(from_range(small_models()));
  CAPTURE(config.family, config.window, config.ties_head());
  const Documents documents(config.vocab_size);
  SmallRun packed(config, documents.packed), apart(config, documents.apart);
  SmallBatch stream = documents.packed;
  stream.document_begin.clear();
  CHECK(packed.loss() == Approx(apart.loss()).epsilon(1e-6));
  CHECK(std::abs(SmallRun(config, stream).loss() - apart.loss()) > 1e-3);
  for (SmallRun* run : {&packed, &apart}) run->differentiate(false);
  for (size_t unit = 0; unit < packed.units().size(); ++unit) {
    for (size_t tensor = 0; tensor < packed.gradients()[unit].size(); ++tensor) {
      CAPTURE(packed.units()[unit].tensors[tensor].name);
      const Floats &found = packed.gradients()[unit][tensor],
                   &expected = apart.gradients()[unit][tensor];
      double largest = 0, worst = 0;
      for (size_t i = 0; i < expected.size(); ++i) {
        largest = std::max(largest, std::abs(double(expected[i])));
        worst = std::max(worst, std::abs(double(found[i]) - expected[i]));
      }
      CHECK(worst <= 2e-6 * largest + 2e-6);
    }
  }
}

// Learned positions; rotations of the whole head, of a part of it, and by two sets of frequencies.
TEST_CASE("the gradients of packed rows are the slopes of their loss", "[model]") {
  const ModelConfig config =
      GENERATE(from_range(first_of({"gpt2", "llama", "gpt_neox", "gemma3_text"})));
  CAPTURE(config.family, config.window);
  SmallRun run(config, Documents(config.vocab_size).packed);
  check_slopes(run);
}

TEST_CASE("the gradients of packed rows have the same bits, whatever is kept and made again",
          "[model]") {
  const ModelConfig config = GENERATE(from_range(small_models()));
  const SmallBatch batch = Documents(config.vocab_size).packed;
  SmallRun plain(config, batch);
  plain.differentiate(false);
  for (const KeptOutputs kept : {KeptOutputs::kNone, KeptOutputs::kAll}) {
    SmallRun run(config, batch, kept);
    for (const Recompute again : {Recompute::kSelective, Recompute::kFull}) {
      run.differentiate(false, again);
      CAPTURE(config.family, kept, again);
      CHECK(run.gradients() == plain.gradients());
    }
  }
}

}  // namespace
}  // namespace gxp
