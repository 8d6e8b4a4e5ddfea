#include "lib/arch/config_json/config_json.h"

#include <cmath>
#include <vector>

#include "lib/arch/architecture.h"
#include "lib/base/error.h"
#include "tests/arch/config_samples.h"
#include "tests/catch.h"
#include "tests/error_of.h"

namespace gxp {
namespace {

using Catch::Matchers::Contains;

// The file of a sample with some members changed; {"KEY", "absent"} takes one away.
Json changed(const std::string& sample, const Json& members) {
  Json config = config_of(sample);
  config.update(members);
  for (const auto& [key, value] : members.items())
    if (value == "absent") config.erase(key);
  return config;
}

ModelConfig model_in(const std::string& sample, const Json& members = Json::object()) {
  const ModelReading reading = read_model(changed(sample, members));
  CAPTURE(sample, members.dump());
  REQUIRE(reading.obstacle == "");
  return reading.model;
}

std::string obstacle_in(const std::string& sample, const Json& members) {
  return read_model(changed(sample, members)).obstacle;
}

}  // namespace

TEST_CASE("a sample's model has the parameters that transformers counts", "[arch]") {
  const std::string sample = GENERATE(from_range(model_samples()));
  CAPTURE(sample);
  if (is_refused(sample)) {
    CHECK_THAT(obstacle_in(sample, Json::object()), Contains("longest row of a batch"));
    return;
  }
  if (sample == "llama-tied-head-differs") return;  // counted with the other head
  const Json expected = json_in(kModels + sample + "/expected.json");
  CHECK(make_architecture(model_in(sample)).parameter_count() == expected.at("parameters"));
}

TEST_CASE("a model that is written is read again as itself", "[arch]") {
  const std::string sample = GENERATE(from_range(model_samples()));
  CAPTURE(sample);
  if (is_refused(sample)) return;
  const ModelConfig model = model_in(sample);
  const Json alone = write_model(model, Json::object());
  const Json over = write_model(model, config_of(sample));
  CHECK(read_model(alone).obstacle == "");
  CHECK(read_model(alone).model == model);
  CHECK(read_model(over).model == model);
  CHECK(over.at("initializer_range") == config_of(sample).at("initializer_range"));
  // A file that says nothing but what it computes: no default is left to its reader.
  for (const auto& [key, value] : alone.items()) {
    CAPTURE(key);
    CHECK(use_of_key(model.family, key) != KeyUse::kUnknown);
  }
}

TEST_CASE("either spelling of rotary positions is enough", "[arch]") {
  const std::string sample = GENERATE(from_range(model_samples()));
  CAPTURE(sample);
  if (is_refused(sample) || model_in(sample).family == "gpt2") return;
  const ModelConfig model = model_in(sample);
  Json before = write_model(model, Json::object());
  Json after = before;
  before.erase("rope_parameters");
  for (const char* key : {"rope_theta", "rope_scaling", "partial_rotary_factor", "rotary_emb_base",
                          "rotary_pct", "rope_local_base_freq"})
    after.erase(key);
  CHECK(read_model(before).model == model);
  CHECK(read_model(after).model == model);
}

TEST_CASE("windows are those of the family", "[arch]") {
  const auto windows = [](const std::string& sample, const Json& members = Json::object()) {
    const ModelConfig model = model_in(sample, members);
    return fmt::format("{} {}", model.window, model.window_layers);
  };
  CHECK(windows("mistral-window") == "6 all");
  CHECK(windows("mistral-window", {{"sliding_window", "absent"}}) == "4096 all");
  CHECK(windows("mistral-full") == "0 all");
  CHECK(windows("qwen2-window") == "6 1-2");
  CHECK(windows("qwen2-window",
                {{"layer_types", {"sliding_attention", "full_attention", "sliding_attention"}}}) ==
        "6 0,2");
  CHECK(windows("qwen2-tied", {{"sliding_window", 4096}}) == "0 all");
  CHECK(windows("smollm3-listed") == "6 0");
  CHECK(windows("smollm3-listed", {{"layer_types", nullptr}, {"no_rope_layers", {1, 0, 0}}}) ==
        "6 1-2");
  CHECK(windows("gemma2") == "6 0,2");
  CHECK(windows("gemma3") == "6 0-1");
  CHECK(windows("gemma3", {{"sliding_window_pattern", "absent"}}) == "6 all");
  CHECK(windows("gemma3-caps") == "6 1");
  CHECK(windows("phi3") == "6 all");
}

TEST_CASE("defaults and old spellings mean what the class makes of them", "[arch]") {
  CHECK(model_in("mistral-full",
                 {{"num_key_value_heads", "absent"}, {"num_attention_heads", 8}, {"head_dim", 4}})
            .kv_heads == 8);
  CHECK(model_in("llama-no-kv-heads").kv_heads == 6);
  CHECK(model_in("qwen3", {{"head_dim", "absent"}}).head_size == 128);
  CHECK(model_in("olmo2", {{"head_dim", 8}}).head_size == 8);
  CHECK(model_in("gemma").activation == Choice<Activation>(Activation::kGeluTanh));
  CHECK(model_in("llama-mlp-bias").activation == Choice<Activation>(Activation::kGelu));
  CHECK(model_in("gpt2-tied").mlp_hidden == 144);
  CHECK(model_in("gpt2-tied", {{"scale_attn_weights", false}}).attention_scale == 1);
  CHECK(model_in("gpt2-tied", {{"n_embd", "absent"}, {"hidden_size", 40}}).hidden == 40);
  CHECK(model_in("gpt2-tied", {{"hidden_size", 36}}).hidden == 36);
  CHECK_THAT(obstacle_in("gpt2-tied", {{"hidden_size", 40}}), Contains("hidden_size is 40"));
  CHECK(model_in("gpt2-options").attention_scale_by_layer);
  CHECK(model_in("gemma2").attention_scale == 1 / std::sqrt(7.0));
  CHECK(model_in("granite").attention_scale == 0.31);
  CHECK(model_in("granite").logit_divisor == 1.7);
  CHECK(model_in("gemma3-caps").score_cap == 0);
  CHECK(model_in("gemma3-caps").logit_cap == 2);
  CHECK(model_in("gemma").pad_token == 0);
  CHECK(model_in("gpt2-tied", {{"pad_token_id", 7}}).pad_token == -1);
  CHECK(model_in("llama-plain", {{"pad_token_id", -1}}).pad_token == 100);
  CHECK(model_in("smollm3").unrotated_layers == "1");
  CHECK(model_in("neox-parallel").rope_partial == 0.25);
  CHECK(model_in("neox-parallel").parallel_residual);
}

TEST_CASE("rotary settings are read as transformers reads them", "[arch]") {
  const ModelConfig yarn = model_in("llama-rope-yarn");
  CHECK(yarn.rope_attention_factor == 0.1 * std::log(4.0) + 1);
  CHECK(yarn.rope_original_context == 32);
  const double g = 0.1 * std::log(5.0);
  CHECK(model_in("llama-rope-yarn-mscale").rope_attention_factor ==
        Approx((1.2 * g + 1) / (0.7 * g + 1)).epsilon(1e-14));
  CHECK(model_in("gemma3").rope_local_theta == 100);
  CHECK(model_in("gemma3").rope_factor == 8);
  CHECK(model_in("gemma3-caps").rope_theta == 1000);
  CHECK(model_in("smollm3", {{"rope_theta", "absent"}}).rope_theta == 2e6);
  CHECK(model_in("gemma3", {{"rope_theta", "absent"}}).rope_theta == 1e6);
  CHECK(model_in("llama-plain", {{"rope_theta", 5.0}}).rope_theta == 10000);  // the inner one wins
  const Json scaling = {{"type", "linear"}, {"factor", 2}};
  CHECK(model_in("llama-plain",
                 {{"rope_scaling", scaling}, {"rope_theta", 5.0}, {"rope_parameters", "absent"}})
            .rope_theta == 5);
  CHECK(model_in("llama-rope-llama3", {{"original_max_position_embeddings", 32}})
            .rope_original_context == 32);
  CHECK(model_in("llama-plain", {{"partial_rotary_factor", 0.5}}).rope_partial == 1);
}

struct Refused {
  std::string sample;
  Json members;
  std::string says;
};
const std::vector<Refused>& refused_files() {
  static const std::vector<Refused> kFiles = {
      {"llama-plain",
       {{"model_type", "gemma3"}},
       "model_type is gemma3; supported: gpt2, gpt_neox"},
      {"llama-plain", {{"model_type", "absent"}}, "model_type is absent"},
      {"llama-plain", {{"architectures", {"LlamaForSequenceClassification"}}}, "architectures is"},
      {"llama-plain", {{"hidden_act", "quick_gelu"}}, "hidden_act is quick_gelu"},
      {"llama-plain", {{"foo_scale", 2}}, "foo_scale is 2, a key that gxp does not know for llama"},
      {"llama-plain",
       {{"quantization_config", {{"bits", 4}}}},
       "quantization_config is {\"bits\":4}"},
      {"llama-plain",
       {{"num_key_value_heads", 4}},
       "num_key_value_heads is 4, which does not divide 6 heads"},
      {"llama-plain", {{"sliding_window", 7}}, "sliding_window is 7"},
      {"llama-plain", {{"layer_types", {"sliding_attention", "full_attention"}}}, "layer_types is"},
      {"llama-plain", {{"head_dim", 7}}, "turn 7 of 7 channels of a head, not an even number"},
      {"llama-plain", {{"pad_token_id", 101}}, "pad_token_id is 101, no token of 101"},
      {"gemma", {{"use_bidirectional_attention", true}}, "use_bidirectional_attention is true"},
      {"gemma", {{"num_key_value_heads", nullptr}}, "num_key_value_heads is null"},
      {"gpt2-tied",
       {{"add_cross_attention", true}},
       "add_cross_attention is true; gxp computes "
       "gpt2 only with false"},
      {"qwen2-tied",
       {{"layer_types", {"sliding_attention", "full_attention"}}, {"sliding_window", 5}},
       "use_sliding_window is false, and there are layers with a window"},
      {"gemma2", {{"sliding_window", nullptr}}, "sliding_window is null"},
      {"smollm3", {{"no_rope_layers", {1, 2, 0}}}, "no_rope_layers is [1,2,0]"},
      {"neox-parallel", {{"rotary_pct", 0.2}}, "turn 3 of 16 channels"},
      {"llama-rope-linear", {{"partial_rotary_factor", 0.5}}, "partial_rotary_factor is 0.5"},
      {"llama-rope-linear",
       {{"rope_scaling", {{"type", "linear"}, {"factor", 2}, {"low_freq_factor", 1}}}},
       "rope_scaling.low_freq_factor is 1"},
      {"llama-plain",
       {{"rope_parameters", {{"rope_type", "default"}, {"mrope_section", {1, 1, 1}}}}},
       "rope_parameters.mrope_section is [1,1,1]"},
      {"llama-plain", {{"rope_scaling", {{"rope_type", "su"}}}}, "rope_type is su"},
      {"phi3", {{"rope_scaling", {{"type", "yarn"}, {"factor", 2}}}}, "rope_type is yarn"},
      {"gemma3-caps",
       {{"rope_parameters", {{"full_attention", {{"rope_type", "default"}, {"foo", 1}}}}}},
       "rope_parameters.full_attention.foo is 1"},
      {"gemma3-caps",
       {{"rope_parameters", {{"rope_type", "default"}, {"rope_theta", 5.0}}}},
       "rope_parameters.rope_theta is 5.0"},
      {"gemma3-caps",
       {{"rope_parameters", {{"sliding_attention", {{"rope_type", "linear"}, {"factor", 2}}}}}},
       "rope_parameters.sliding_attention.rope_type is linear"},
  };
  return kFiles;
}

TEST_CASE("what gxp does not compute is refused by key and value", "[arch]") {
  const Refused file = GENERATE(from_range(refused_files()));
  CAPTURE(file.sample, file.members.dump());
  CHECK_THAT(obstacle_in(file.sample, file.members), Contains(file.says));
}

TEST_CASE("what a family's config.json cannot say is not written", "[arch]") {
  ModelConfig model = model_in("mistral-window");
  model.window_layers = "0";
  const auto write = [&] { write_model(model, Json::object()); };
  CHECK_THAT(error_of(write).message, Contains("model.window_layers is 0"));
  model = model_in("gpt2-tied");
  model.attention_scale = 0.3;
  CHECK_THAT(error_of(write).message, Contains("model.attention_scale is 0.3"));
  model = model_in("gemma");
  model.activation = Activation::kGelu;
  CHECK_THAT(error_of(write).message, Contains("model.activation is gelu"));
}

TEST_CASE("a score scale is written as the number whose root it is", "[arch]") {
  ModelConfig model = model_in("gemma2");
  for (const double number : {7.0, 144.0, 256.0, 7.3, 0.01, 12345.678}) {
    model.attention_scale = 1 / std::sqrt(number);
    CAPTURE(number);
    CHECK(read_model(write_model(model, Json::object())).model == model);
  }
}

TEST_CASE("dropout is described, of the family's class only", "[arch]") {
  CHECK(describe_dropout(changed("gpt2-tied", {{"resid_pdrop", 0.1}, {"hidden_dropout", 0.5}})) ==
        "resid_pdrop 0.1");
  CHECK(describe_dropout(config_of("gpt2-tied")) == "");
}

TEST_CASE("models that are computed alike are equal once resolved", "[arch]") {
  ModelConfig model = model_in("llama-rope-yarn");
  ModelConfig silent = model;
  silent.rope_attention_factor = 0;
  silent.head_size = 0;
  silent.tied_head = std::nullopt;
  CHECK(silent != model);
  CHECK(silent.resolved() == model.resolved());
  silent.rope_theta = 5;
  CHECK(silent.resolved() != model.resolved());
}

}  // namespace gxp
