// Models of Hugging Face's families that its library has written (tests/data/models), and what it
// computes of them.
#include <cmath>
#include <filesystem>
#include <set>

#include "lib/arch/config_json/config_json.h"
#include "lib/ckpt/file.h"
#include "lib/ckpt/format.h"
#include "lib/ckpt/peft/peft.h"
#include "tests/catch.h"
#include "tests/model/small_run.h"

namespace gxp {
namespace {

const std::string kModels = std::string(GXP_TEST_DATA) + "/models/";

// Of which the frequencies of positions depend on the longest row of a batch.
const std::set<std::string> kByBatch = {"llama-rope-dynamic", "phi3-longrope"};
// Whose stored head is not the token table, although config.json ties the two: refused when it is
// loaded (tests/ckpt/model_check_test.cc).
const std::string kContradicts = "llama-tied-head-differs";

std::vector<std::string> recorded_models() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(kModels)) {
    const std::string name = entry.path().filename();
    if (std::filesystem::exists(entry.path() / "config.json") && !kByBatch.contains(name) &&
        name != kContradicts)
      names.push_back(name);
  }
  std::ranges::sort(names);
  return names;
}

template <class Element>
std::vector<Element> read_all(const NamedTensors& file, const std::string& name) {
  const NamedTensor* tensor = find_tensor(file, name);
  REQUIRE(tensor != nullptr);
  std::vector<Element> values(tensor->info.count());
  tensor->read(0, memory_of(values));
  return values;
}

ModelReading reading_of(const std::string& directory) {
  const std::string path = directory + "/config.json";
  return read_model(parse_python_json(read_text(path, 1 << 20), path));
}

void load(SmallRun& run, const NamedTensors& weights) {
  for (size_t unit = 0; unit < run.units().size(); ++unit) {
    const auto& tensors = run.units()[unit].tensors;
    for (size_t i = 0; i < tensors.size(); ++i)
      run.parameters(unit, i) = read_all<float>(weights, tensors[i].name);
  }
}

// The first `positions` tokens of each row of ids(rows, all), and the tokens after them.
SmallBatch batch_of(const std::vector<int64_t>& ids, size_t rows, size_t positions) {
  SmallBatch batch{.rows = rows, .positions = positions, .tokens = {}, .targets = {}};
  const size_t all = ids.size() / rows;
  for (size_t row = 0; row < rows; ++row) {
    for (size_t i = 0; i < positions; ++i) {
      batch.tokens.push_back(int32_t(ids[row * all + i]));
      batch.targets.push_back(i + 1 < all ? int32_t(ids[row * all + i + 1]) : -1);
    }
  }
  return batch;
}

double norm(const Floats& values) {
  double sum = 0;
  for (const float value : values) sum += double(value) * value;
  return std::sqrt(sum);
}

// The largest difference of the logits of all positions from the recorded ones.
double logits_difference(const ModelConfig& config, const NamedTensors& weights,
                         const NamedTensors& reference, const std::string& name) {
  constexpr size_t kRows = 2;
  const auto ids = read_all<int64_t>(reference, "input_ids");
  const auto logits = read_all<float>(reference, name);
  const size_t all = ids.size() / kRows;
  const auto vocabulary = size_t(config.vocab_size);
  double worst = 0;
  for (size_t length = 1; length <= all; ++length) {
    SmallRun prefix(config, batch_of(ids, kRows, length));
    load(prefix, weights);
    const Floats found = prefix.last_logits();
    for (size_t i = 0; i < found.size(); ++i) {
      const size_t at = (i / vocabulary * all + length - 1) * vocabulary + i % vocabulary;
      worst = std::max(worst, std::abs(double(found[i]) - double(logits[at])));
    }
  }
  return worst;
}

TEST_CASE("a recorded model has its library's loss, logits and gradients", "[model]") {
  const std::string name = GENERATE(from_range(recorded_models()));
  CAPTURE(name);
  const ModelReading reading = reading_of(kModels + name);
  REQUIRE(reading.obstacle.empty());
  const ModelConfig& config = reading.model;
  const NamedTensors weights = read_checkpoint(kModels + name);
  const NamedTensors reference = read_checkpoint(kModels + name + "/reference.safetensors");
  const auto ids = read_all<int64_t>(reference, "input_ids");
  constexpr size_t kRows = 2;
  const size_t all = ids.size() / kRows;

  SmallRun run(config, batch_of(ids, kRows, all));
  load(run, weights);
  const double count = double(kRows * (all - 1));
  CHECK(std::abs(run.loss() / count - double(read_all<float>(reference, "loss")[0])) < 1e-5);

  CHECK(logits_difference(config, weights, reference, "logits") < 1e-5);

  run.differentiate(false);
  for (size_t unit = 0; unit < run.units().size(); ++unit) {
    for (size_t i = 0; i < run.units()[unit].tensors.size(); ++i) {
      const std::string& tensor = run.units()[unit].tensors[i].name;
      Floats expected = read_all<float>(reference, "grad." + tensor);
      const double scale = norm(expected);
      for (size_t at = 0; at < expected.size(); ++at)
        expected[at] -= float(double(run.gradients()[unit][i][at]) / count);
      CAPTURE(tensor, scale);
      CHECK(norm(expected) < 1e-4 * scale + 1e-6);  // some gradients are rounding alone
    }
  }
}

TEST_CASE("weights with a merged adapter compute what PEFT's do", "[model]") {
  const auto [name, base] = GENERATE(table<std::string, std::string>({
      {"gpt2-lora-qkv", "gpt2-tied"},
      {"llama-lora-all", "llama-gqa"},
      {"phi3-lora-fused", "phi3"},
      {"qwen3-lora-rs", "qwen3"},
  }));
  CAPTURE(name);
  const NamedTensors merged =
      merge_adapters(read_checkpoint(kModels + base), read_checkpoint(kModels + name));
  const NamedTensors reference = read_checkpoint(kModels + name + "/reference.safetensors");
  CHECK(logits_difference(reading_of(kModels + base).model, merged, reference, "merged_logits") <
        1e-5);
}

TEST_CASE("positions that depend on a batch's longest row are refused", "[model]") {
  for (const std::string& name : kByBatch) {
    CAPTURE(name);
    CHECK_THAT(reading_of(kModels + name).obstacle, Catch::Contains("longest row of a batch"));
  }
}

}  // namespace
}  // namespace gxp
