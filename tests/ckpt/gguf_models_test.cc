// The models of tests/data/models in GGUF: what llama.cpp computes too goes there and back, all else
// is refused by a setting.
#include <nlohmann/json.hpp>
#include <set>

#include "lib/ckpt/cast.h"
#include "lib/ckpt/gguf/header.h"
#include "lib/ckpt/huggingface/config_json.h"
#include "lib/ckpt/huggingface/model_tensors.h"
#include "tests/ckpt/conversions.h"

namespace gxp {
namespace {

using Catch::Matchers::Contains;

const std::string kGgufModels = GXP_TEST_DATA "/models/";

// A sample with settings of its own, and why it is refused; "": it is not.
struct GgufSample {
  std::string name;
  KeyValues changes = {};
  std::string reason = {};
};

const KeyValues kUsualScale = {{"model.attention_scale", "0.31622776601683794"}};  // of 10 channels

KeyValues with_scale(KeyValues more) {
  more.insert(more.end(), kUsualScale.begin(), kUsualScale.end());
  return more;
}

const std::vector<GgufSample> kGgufSamples = {
    {"gemma"},
    {"gemma2", {}, "model.attention_scale is 0.3779644730092272; in GGUF, a gemma2 has 0.316"},
    {"gemma2", kUsualScale},
    {"gemma2-no-caps", {}, "model.attention_scale"},
    {"gemma2", with_scale({{"model.logit_cap", "0.0"}}), "model.logit_cap is 0.0"},
    {"gemma2", with_scale({{"model.score_cap", "0.0"}}), "model.score_cap is 0.0"},
    {"gemma2", with_scale({{"model.window_layers", "\"all\""}}), "model.window_layers is \"all\""},
    {"gemma3", {}, "model.window_layers is \"0-1\"; in GGUF, a gemma3 has \"all\""},
    {"gemma3", with_scale({{"model.window_layers", "\"all\""}})},
    {"gemma3-caps", with_scale({{"model.window_layers", "\"all\""}})},
    {"gpt2-options", {}, "model.activation is \"gelu\"; in GGUF, a gpt2 has \"gelu_tanh\""},
    {"gpt2-tied"},
    {"gpt2-tied", {{"model.attention_scale_by_layer", "true"}}, "model.attention_scale_by_layer"},
    {"gpt2-untied"},
    {"granite"},
    {"granite", {{"model.attention_scale", "0.0"}}},  // 1 / sqrt(6), no F32
    {"granite-untied-bias"},
    {"llama-attention-bias"},
    {"llama-gqa"},
    {"llama-mlp-bias", {}, "model.activation is \"gelu\""},
    {"llama-mlp-bias", {{"model.activation", "\"silu\""}}},
    {"llama-no-head-dim"},
    {"llama-no-kv-heads"},
    {"llama-plain"},
    {"llama-plain", {{"model.pad_token", "3"}}},
    {"llama-rope-dynamic", {}, "rope_type is dynamic"},
    {"llama-rope-linear"},
    {"llama-rope-llama3"},
    {"llama-rope-yarn"},
    {"llama-rope-yarn-mscale", {}, "model.rope_truncate is false"},
    {"llama-rope-yarn-mscale", {{"model.rope_truncate", "true"}}},
    {"llama-tied-head-differs", {}, "is stored and differs"},
    {"llama-tied-head-equal"},
    {"llama-tied-head-only"},
    {"mistral-full"},
    {"mistral-full", {{"model.rope_scaling", "\"llama3\""}, {"model.rope_factor", "8.0"}}},
    {"mistral-window", {}, "model.window is 6; in GGUF, a llama has 0"},
    {"mistral-window", {{"model.window", "40"}}},  // the context
    {"neox-parallel"},
    {"neox-parallel", {{"model.activation", "\"gelu_tanh\""}}},
    {"neox-parallel", {{"model.rope_partial", "0.26"}}},  // 4 of 16 channels, too
    {"neox-parallel", {{"model.activation", "\"relu\""}}, "model.activation is \"relu\""},
    {"neox-sequential", {}, "model.attention_bias is false; in GGUF, a gptneox has true"},
    {"olmo2"},
    {"phi"},
    {"phi-qk-norm", {}, "model.query_key_norm is true"},
    {"phi3"},
    {"phi3-longrope", {}, "rope_type is longrope"},
    {"qwen2-tied"},
    {"qwen2-tied", {{"model.rope_scaling", "\"llama3\""}}, "rope_freqs.weight does not belong"},
    {"qwen2-window", {}, "model.window is 6"},
    {"qwen2-yarn"},
    {"qwen3"},
    {"qwen3-untied-bias", {}, "model.attention_bias is true; in GGUF, a qwen3 has false"},
    {"smollm3", {}, "model.unrotated_layers is \"1\"; in GGUF, a smollm3 has \"\""},
    {"smollm3", {{"model.unrotated_layers", "\"\""}}},
    {"smollm3-listed", {}, "model.attention_bias is true; in GGUF, a smollm3 has false"}};

std::vector<GgufSample> taken_samples() {
  std::vector<GgufSample> taken = kGgufSamples;
  std::erase_if(taken, [](const GgufSample& sample) { return !sample.reason.empty(); });
  return taken;
}

NamedTensors read_sample(const GgufSample& sample) {
  NamedTensors read = read_checkpoint(kGgufModels + sample.name);
  for (const auto& [key, value] : sample.changes) {
    const auto found = std::ranges::find(read.config, key, &KeyValues::value_type::first);
    REQUIRE(found != read.config.end());
    found->second = value;
  }
  return read;
}

std::map<std::string, std::string> weights_in(const NamedTensors& tensors) {
  return digests({.tensors = weights_of_model(tensors, model_of(tensors.config), "compare")});
}

}  // namespace

TEST_CASE("a model survives GGUF bit by bit, in each type, with all of its settings", "[ckpt]") {
  const TemporaryDirectory dir;
  const GgufSample sample = GENERATE(from_range(taken_samples()));
  const StorageDType dtype = GENERATE(StorageDType::kF32, StorageDType::kBF16, StorageDType::kF16);
  CAPTURE(sample.name, sample.changes, to_string(dtype));
  const NamedTensors read =
      cast_weights(read_sample(sample), dtype, std::make_shared<OverflowCount>(0));
  const NamedTensors back =
      converted(converted(read, "gguf", dir / "m.gguf"), "huggingface", dir / "back");
  CHECK(weights_in(back) == weights_in(read));
  CHECK(model_of(back.config).resolved() == model_of(read.config).resolved());
  CHECK(weights_in(converted(back, "gguf", dir / "again.gguf")) == weights_in(read));
  CHECK(read_bytes(dir / "again.gguf") == read_bytes(dir / "m.gguf"));
}

TEST_CASE("what llama.cpp computes otherwise is refused by the setting's name", "[ckpt]") {
  const TemporaryDirectory dir;
  for (const GgufSample& sample : kGgufSamples) {
    if (sample.reason.empty()) continue;
    CAPTURE(sample.name, sample.changes);
    CHECK_THAT(refused_conversion(read_sample(sample), "gguf", dir), Contains(sample.reason));
  }
}

TEST_CASE("every sample with a config.json is among those of GGUF", "[ckpt]") {
  for (const std::string& name : list(kGgufModels)) {
    CAPTURE(name);
    if (std::filesystem::exists(kGgufModels + name + "/config.json"))
      CHECK(std::ranges::find(kGgufSamples, name, &GgufSample::name) != kGgufSamples.end());
  }
}

// keys.json: what the gguf library reads of the keys that llama.cpp has of each family.
TEST_CASE("GGUF has llama.cpp's keys of each family, with their values", "[ckpt]") {
  const TemporaryDirectory dir;
  const auto expected = nlohmann::json::parse(read_bytes(GXP_TEST_DATA "/ckpt/gguf/keys.json"));
  std::set<std::string> seen;
  for (const GgufSample& sample : taken_samples()) {
    CAPTURE(sample.name, sample.changes);
    if (!expected.contains(sample.name) || !seen.insert(sample.name).second) continue;
    converted(read_sample(sample), "gguf", dir / "m.gguf");
    const GgufHeader header = read_gguf_header(InputFile(dir / "m.gguf"));
    for (const auto& [key, value] : expected[sample.name].items()) {
      CAPTURE(key);
      REQUIRE(header.keys.contains(key));
      const GgufValue& found = header.keys.at(key);
      if (value.is_string()) CHECK(found == GgufValue(value.get<std::string>()));
      if (value.is_boolean()) CHECK(found == GgufValue(value.get<bool>()));
      if (value.is_number_unsigned()) CHECK(found == GgufValue(value.get<uint64_t>()));
      if (value.is_number_float()) CHECK(found == GgufValue(value.get<float>()));
    }
    for (const auto& entry : header.keys)
      CHECK((entry.first.starts_with("general.") || entry.first.starts_with("gxp.") ||
             expected[sample.name].contains(entry.first)));
  }
}

TEST_CASE("a GGUF file of another program needs none of gxp's keys", "[ckpt]") {
  const TemporaryDirectory dir;
  const auto [name, factor] = GENERATE(table<std::string, double>(
      {{"llama-plain", 1}, {"llama-rope-llama3", 8}, {"llama-rope-llama3", 32}}));
  CAPTURE(name, factor);
  NamedTensors read = read_checkpoint(kGgufModels + name);
  for (auto& [key, value] : read.config) {
    if (key == "model.rope_factor") value = fmt::format("{:.1f}", factor);
    if (key == "model.rope_original_context" && factor > 1) value = "8192";
  }
  converted(read, "gguf", dir / "m.gguf");
  std::string bytes = read_bytes(dir / "m.gguf");
  for (size_t at = 0; (at = bytes.find("gxp.model.", at)) != std::string::npos; ++at)
    bytes.replace(at, 4, "abc.");
  write_bytes(dir / "other.gguf", bytes);
  CHECK(model_of(read_checkpoint(dir / "other.gguf").config).resolved() ==
        model_of(read.config).resolved());
}

TEST_CASE("gxp's keys in a GGUF file never change what llama.cpp's say", "[ckpt]") {
  const TemporaryDirectory dir;
  const auto [name, key, told, now] =
      GENERATE(table<std::string, std::string, std::string, std::string>(
          {{"llama-rope-llama3", "gxp.model.rope_factor", "8.0", "4.0"},
           {"llama-rope-yarn", "gxp.model.rope_attention_factor", "1.1386", "1.2386"},
           {"gemma", "gxp.model.pad_token", "0", "x"}}));
  CAPTURE(name);
  converted(read_checkpoint(kGgufModels + name), "gguf", dir / "m.gguf");
  std::string bytes = read_bytes(dir / "m.gguf");
  const size_t at = bytes.find(told, bytes.find(key));
  REQUIRE(at != std::string::npos);
  bytes.replace(at, told.size(), now);
  write_bytes(dir / "m.gguf", bytes);
  CHECK(read_checkpoint(dir / "m.gguf").config.empty());
}

}  // namespace gxp
