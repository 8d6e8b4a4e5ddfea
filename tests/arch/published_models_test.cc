#include "lib/arch/published_models.h"

#include <cmath>
#include <set>
#include <string>

#include "lib/base/error.h"
#include "tests/catch.h"

namespace gxp {
namespace {

TEST_CASE("a published model's shape gives its published parameter count", "[arch]") {
  // As the safetensors headers on the Hugging Face Hub count them.
  const auto [name, count] = GENERATE(
      table<std::string, uint64_t>({{"gpt2", 124439808},          {"gpt2-medium", 354823168},
                                    {"gpt2-large", 774030080},    {"gpt2-xl", 1557611200},
                                    {"llama2-7b", 6738415616},    {"llama2-13b", 13015864320},
                                    {"llama2-70b", 68976648192},  {"llama3-8b", 8030261248},
                                    {"llama3-70b", 70553706496},  {"llama3.1-405b", 405853388800},
                                    {"llama3.2-1b", 1235814400},  {"llama3.2-3b", 3212749824},
                                    {"mistral-7b", 7241732096},   {"qwen2.5-0.5b", 494032768},
                                    {"qwen2.5-1.5b", 1543714304}, {"qwen2.5-3b", 3085938688},
                                    {"qwen2.5-7b", 7615616512},   {"qwen2.5-14b", 14770033664},
                                    {"qwen2.5-32b", 32763876352}, {"qwen2.5-72b", 72706203648},
                                    {"qwen3-0.6b", 596049920},    {"qwen3-1.7b", 1720574976},
                                    {"qwen3-4b", 4022468096},     {"qwen3-8b", 8190735360},
                                    {"qwen3-14b", 14768307200},   {"qwen3-32b", 32762123264},
                                    {"gemma-2b", 2506172416},     {"gemma-7b", 8537680896}}));
  CAPTURE(name);
  CHECK(parameter_count(find_published_model(name)) == count);
}

TEST_CASE("GPT-3's shapes give the counts of the paper's table D.1", "[arch]") {
  // Millions, as rounded there.
  const auto [name, millions, digit] =
      GENERATE(table<std::string, double, double>({{"gpt3-small", 125, 1},
                                                   {"gpt3-medium", 356, 1},
                                                   {"gpt3-large", 760, 1},
                                                   {"gpt3-xl", 1320, 10},
                                                   {"gpt3-2.7b", 2650, 10},
                                                   {"gpt3-6.7b", 6660, 10},
                                                   {"gpt3-13b", 12850, 10},
                                                   {"gpt3-175b", 174600, 100}}));
  CAPTURE(name);
  const double count = double(parameter_count(find_published_model(name)));
  CHECK(std::round(count / 1e6 / digit) * digit == millions);
}

TEST_CASE("a model's tensors have all its parameters", "[arch]") {
  for (const PublishedModel& model : published_models()) {
    uint64_t count = 0;
    for (const auto& unit : unit_shapes(model)) {
      for (const TensorShape& shape : unit) {
        uint64_t elements = 1;
        for (const uint64_t size : shape) elements *= size;
        count += elements;
      }
    }
    CAPTURE(model.name);
    CHECK(count == parameter_count(model));
  }
}

TEST_CASE("every published model has its own name, a source and whole heads", "[arch]") {
  std::set<std::string_view> names;
  for (const PublishedModel& model : published_models()) {
    CAPTURE(model.name);
    CHECK(names.insert(model.name).second);
    CHECK_FALSE(model.source.empty());
    if (model.kind == BlockKind::kGpt) CHECK(model.heads * model.head_size == model.hidden);
    CHECK(model.heads % model.key_value_heads == 0);
  }
}

TEST_CASE("the largest module is the embedding or one linear layer", "[arch]") {
  CHECK(largest_module(find_published_model("llama2-7b")) == 32000 * 4096);
  CHECK(largest_module(find_published_model("gpt3-175b")) == uint64_t{50257} * 12288);
  PublishedModel narrow = find_published_model("llama2-7b");
  narrow.vocabulary = 256;
  CHECK(largest_module(narrow) == 11008 * 4096);
  narrow = find_published_model("gpt2");
  narrow.vocabulary = 256;
  CHECK(largest_module(narrow) == 3072 * (768 + 1));
}

TEST_CASE("a misspelt model gets the nearest name", "[arch]") {
  CHECK_THROWS_WITH(find_published_model("lama2-7b"), Catch::Contains("did you mean 'llama2-7b'"));
}

}  // namespace
}  // namespace gxp
