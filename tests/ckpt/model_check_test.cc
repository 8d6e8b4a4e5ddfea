// Which files hold a model that gxp computes, and which hold the model of a run.
#include "lib/ckpt/huggingface/model_check.h"

#include <nlohmann/json.hpp>

#include "lib/ckpt/format.h"
#include "lib/ckpt/huggingface/config_json.h"
#include "tests/catch.h"
#include "tests/ckpt/samples.h"

namespace gxp {
namespace {

using Catch::Matchers::Contains;
using nlohmann::json;

const std::string kGpt2 = GXP_TEST_DATA "/ckpt/hf_gpt2";
const std::string kLlama = GXP_TEST_DATA "/ckpt/hf_llama_tied_gqa";

// The model of a folder, as read, with members of its config.json replaced; null removes one.
NamedTensors changed(const std::string& folder, const json& members) {
  NamedTensors tensors = read_weights(folder);
  json config = json::parse(tensors.metadata.at(kConfigText));
  config.update(members);
  for (const auto& [key, value] : members.items())
    if (value == "remove") config.erase(key);
  tensors.metadata[kConfigText] = config.dump();
  tensors.config = read_model_config(config.dump(), folder);
  return tensors;
}

ModelConfig model_in(const std::string& folder) { return model_of(read_weights(folder).config); }

struct Other {
  std::string folder;
  json members;      // of config.json
  std::string says;  // of the one that is in the way
};

std::vector<Other> others() {
  const auto rope = [](const char* type) -> json {
    return {{"rope_scaling", {{"rope_type", type}, {"factor", 8.0}}}};
  };
  std::vector<Other> rows;
  for (const char* type : {"mixtral", "gemma3", "mistral3", "llama4_text", "phi-msft", "mamba2"})
    rows.push_back({kLlama, {{"model_type", type}}, fmt::format("model_type is {}", type)});
  for (const char* type : {"dynamic", "longrope", "su", "unheard-of"})
    rows.push_back({kLlama, rope(type), fmt::format("rope_type is {}", type)});
  const std::vector<Other> more = {
      {kLlama, {{"model_type", "remove"}}, "model_type is absent"},
      {kLlama,
       {{"architectures", {"Qwen2ForCausalLM"}}},
       "architectures is [\"Qwen2ForCausalLM\"]"},
      {kLlama, {{"rope_parameters", {{"rope_type", "yarn"}}}}, "rope_parameters.factor is absent"},
      {kLlama,
       {{"rope_parameters", {{"full_attention", {{"rope_theta", 5.0}}}}}},
       "rope_parameters.full_attention is"},
      {kLlama, {{"rope_parameters", {{"rope_theta", "high"}}}}, "rope_theta is high"},
      {kLlama, {{"no_rope_layers", {1, 0}}}, "no_rope_layers"},
      {kLlama, {{"sliding_window", 16}}, "sliding_window is 16"},
      {kLlama, {{"sliding_window", 16}, {"use_sliding_window", true}}, "sliding_window is 16"},
      {kLlama, {{"layer_types", {"full_attention", "sliding_attention"}}}, "sliding_attention"},
      {kLlama, {{"hidden_act", "quick_gelu"}}, "hidden_act is quick_gelu"},
      {kLlama, {{"rms_norm_eps", 0}}, "rms_norm_eps is 0"},
      {kLlama, {{"final_logit_softcapping", 30.0}}, "final_logit_softcapping is 30.0"},
      {kLlama, {{"attn_logit_softcapping", 50.0}}, "attn_logit_softcapping is 50.0"},
      {kLlama, {{"embedding_multiplier", 12}}, "embedding_multiplier is 12"},
      {kLlama, {{"attention_multiplier", 0.0078125}}, "attention_multiplier is"},
      {kLlama, {{"query_pre_attn_scalar", 256}}, "query_pre_attn_scalar is 256"},
      {kLlama, {{"use_qk_norm", true}}, "use_qk_norm is true"},
      {kLlama, {{"use_parallel_residual", true}}, "use_parallel_residual is true"},
      {kLlama, {{"num_local_experts", 8}}, "num_local_experts is 8"},
      {kLlama, {{"quantization_config", {{"quant_method", "fp8"}}}}, "quantization_config is"},
      {kLlama, {{"vocab_size", 20'000'000}}, "model.vocab_size must be from 1 to"},
      {kGpt2, {{"activation_function", "selu"}}, "activation_function is selu"},
      {kGpt2, {{"add_cross_attention", true}}, "add_cross_attention is true"},
      {kGpt2, {{"n_head", 2.5}}, "n_head is 2.5"}};
  rows.insert(rows.end(), more.begin(), more.end());
  return rows;
}

}  // namespace

TEST_CASE("a config.json that describes another computation is refused by the key", "[ckpt]") {
  const Other row = GENERATE(from_range(others()));
  CAPTURE(row.folder, row.members.dump());
  const NamedTensors tensors = changed(row.folder, row.members);
  CHECK_THAT(foreign_model(tensors), Contains(row.says));
  CHECK(tensors.config.empty());
  CHECK_THAT(model_mismatch(tensors, model_in(row.folder)),
             Contains("gxp does not implement its model: ") && Contains(row.says));
  CHECK_THAT(model_problem(tensors), Contains(row.says));
}

TEST_CASE("a model that gxp computes is taken in every spelling of its config.json", "[ckpt]") {
  const auto [folder, members] = GENERATE(table<std::string, json>(
      {{kGpt2, json::object()},
       {kGpt2, {{"activation_function", "gelu_pytorch_tanh"}, {"n_inner", 96}}},
       {kGpt2, {{"architectures", {"GPT2Model"}}, {"attn_pdrop", 0.1}, {"n_ctx", 32}}},
       {kGpt2, {{"tie_word_embeddings", "remove"}, {"architectures", nullptr}}},
       {kLlama, json::object()},
       {kLlama, {{"rope_parameters", "remove"}, {"rope_theta", 10000}, {"rope_scaling", nullptr}}},
       {kLlama, {{"rope_parameters", "remove"}}},
       {kLlama, {{"rope_scaling", {{"rope_type", "default"}}}}},
       {kLlama, {{"rope_scaling", json::object()}, {"partial_rotary_factor", 1}}},
       {kLlama, {{"hidden_act", "swish"}, {"architectures", {"LLaMAForCausalLM"}}}},
       {kLlama, {{"sliding_window", 16}, {"use_sliding_window", false}}},
       {kLlama,
        {{"sliding_window", nullptr}, {"layer_types", {"full_attention", "full_attention"}}}},
       {kLlama, {{"attention_bias", "remove"}, {"mlp_bias", "remove"}, {"pretraining_tp", 2}}},
       {kLlama, {{"logits_scaling", 1}, {"final_logit_softcapping", nullptr}, {"num_experts", 0}}},
       {kLlama, {{"max_position_embeddings", 131072}, {"attention_dropout", 0.1}}}}));
  CAPTURE(folder, members.dump());
  const NamedTensors tensors = changed(folder, members);
  CHECK(foreign_model(tensors) == "");
  CHECK(model_mismatch(tensors, model_in(folder)) == "");
  CHECK(model_problem(tensors) == "");
  CHECK(unrecorded_settings(tensors, model_in(folder)) == "");
}

TEST_CASE("settings that no tensor shows are held against the run's", "[ckpt]") {
  const auto [folder, members, says] = GENERATE(table<std::string, json, std::string>(
      {{kLlama, {{"hidden_act", "gelu"}}, "model.activation is \"gelu\" there and \"silu\""},
       {kLlama, {{"pad_token_id", 3}}, "model.pad_token is 3 there and -1 in this run"},
       {kLlama,
        {{"partial_rotary_factor", 1}, {"rope_scaling", {{"type", "linear"}, {"factor", 2}}}},
        "model.rope_scaling is \"linear\" there"},
       {kLlama, {{"attention_bias", true}}, "model.attention_bias is true there"},
       {kGpt2, {{"scale_attn_weights", false}}, "model.attention_scale is 1.0 there"},
       {kGpt2, {{"n_inner", 55}}, "model.mlp_hidden is 55 there and 96 in this run"},
       {kGpt2, {{"tie_word_embeddings", false}}, "model.tied_head is false there"}}));
  CAPTURE(folder, members.dump());
  CHECK_THAT(model_mismatch(changed(folder, members), model_in(folder)), Contains(says));
}

TEST_CASE("the base of rotary positions is the one that transformers takes", "[ckpt]") {
  const auto [members, theta] = GENERATE(table<json, std::string>(
      {{{{"rope_theta", 5e5}, {"rope_parameters", "remove"}}, "500000.0"},
       {{{"rope_theta", 5e5}, {"rope_parameters", {{"rope_theta", 2e5}}}}, "200000.0"},
       {{{"rope_theta", 5e5}, {"rope_parameters", {{"rope_type", "default"}}}}, "500000.0"},
       {{{"rope_theta", 5e5}, {"rope_scaling", {{"type", "default"}}}}, "500000.0"},
       {{{"rope_theta", nullptr}, {"rope_parameters", nullptr}}, "10000.0"}}));
  CAPTURE(members.dump());
  CHECK(find_value(changed(kLlama, members).config, "model.rope_theta") == theta);
}

TEST_CASE("each setting that a file tells must be the run's, with its default filled in",
          "[ckpt]") {
  const NamedTensors file = read_weights(kLlama);
  const ModelConfig right = model_in(kLlama);
  const auto mismatch = [&](auto change) {
    ModelConfig model = right;
    change(model);
    return model_mismatch(file, model);
  };
  CHECK(mismatch([](ModelConfig& model) { model.context = 9; }) == "");
  CHECK(mismatch([](ModelConfig& model) { model.init = "elsewhere"; }) == "");
  CHECK_THAT(mismatch([](ModelConfig& m) { m.rope_theta = 5e5; }),
             Contains("model.rope_theta is 10000.0 there and 500000.0 in this run"));
  CHECK_THAT(mismatch([](ModelConfig& m) { m.norm_eps = 1e-4; }), Contains("model.norm_eps is "));
  CHECK_THAT(mismatch([](ModelConfig& m) { m.kv_heads = 0; }), Contains("model.kv_heads is "));
  CHECK_THAT(mismatch([](ModelConfig& m) { m.tied_head = false; }), Contains("model.tied_head"));
  CHECK_THAT(mismatch([](ModelConfig& m) { m.family = "gpt2"; }),
             Contains("model.family is \"llama\" there and \"gpt2\" in this run"));
  CHECK_THAT(mismatch([](ModelConfig& m) {
               m.heads *= 2;
               m.head_size /= 2;
             }),
             Contains("model.heads is ") && Contains("model.head_size is "));
  NamedTensors silent = file;  // as of 2023
  std::erase_if(silent.config, [](const auto& pair) { return pair.first == "model.head_size"; });
  silent.metadata.clear();
  CHECK(model_mismatch(silent, right) == "");
  CHECK_THAT(model_mismatch(read_weights(kGpt2),
                            [&] {
                              ModelConfig model = model_in(kGpt2);
                              model.context = 16;
                              return model;
                            }()),
             Contains("model.context is 32 there and 16 in this run"));
}

TEST_CASE("a weight that would not be read is named, a buffer of old files is none", "[ckpt]") {
  const auto [name, says] = GENERATE(table<std::string, std::string>(
      {{"model.layers.0.self_attn.q_proj.bias", "q_proj.bias, which is not part of gxp's llama"},
       {"model.layers.1.self_attn.q_norm.weight", "q_norm.weight, which is not part"},
       {"model.layers.2.mlp.up_proj.weight", "model.layers.2."},
       {"score.weight", "score.weight"},
       {"model.layers.0.self_attn.rotary_emb.inv_freq", ""}}));
  NamedTensors file = read_weights(kLlama);
  file.tensors.push_back(counting_tensor(name, {4}));
  CHECK_THAT(model_mismatch(file, model_in(kLlama)), Contains(says));
  CHECK(model_mismatch(file, model_in(kLlama)).empty() == says.empty());
  CHECK(foreign_model(file).empty() == says.empty());
  file.config.clear();  // a single file, which tells nothing but its tensors
  file.metadata.clear();
  CHECK(foreign_model(file) == "");
  CHECK_THAT(model_mismatch(file, model_in(kLlama)), Contains(says));
  CHECK(unrecorded_settings(file, model_in(kLlama)) ==
        "model.heads, model.norm_eps, model.activation, model.rope_theta, model.rope_scaling, "
        "model.pad_token");
}

TEST_CASE("a tied head that is stored must be the token table", "[ckpt]") {
  NamedTensors file = read_weights(kLlama);
  NamedTensor head = *find_tensor(file, "model.embed_tokens.weight");
  head.info.name = "lm_head.weight";
  file.tensors.push_back(head);
  CHECK(model_mismatch(file, model_in(kLlama)) == "");
  file.tensors.back() = counting_tensor("lm_head.weight", head.info.shape);
  CHECK_THAT(model_mismatch(file, model_in(kLlama)),
             Contains("lm_head.weight is stored and differs"));
}

TEST_CASE("a single file of weights is held against the config.json beside it", "[ckpt]") {
  const TemporaryDirectory dir;
  const std::string file = dir / "model.safetensors";
  std::filesystem::copy_file(kLlama + "/model.safetensors", file);
  CHECK(unrecorded_settings(read_weights(file), model_in(kLlama)) != "");
  json config = json::parse(read_bytes(kLlama + "/config.json"));
  write_bytes(dir / "config.json", config.dump());
  CHECK(unrecorded_settings(read_weights(file), model_in(kLlama)) == "");
  config["model_type"] = "mixtral";
  write_bytes(dir / "config.json", config.dump());
  CHECK_THAT(model_mismatch(read_weights(file), model_in(kLlama)),
             Contains("model_type is mixtral"));
  write_bytes(dir / "config.json", R"({"of": "something else"})");
  CHECK(model_mismatch(read_weights(file), model_in(kLlama)) == "");
}

TEST_CASE("what gxp does not compute is told after a conversion, too", "[ckpt]") {
  const TemporaryDirectory dir;
  const std::string format = GENERATE("gxp", "huggingface", "safetensors");
  NamedTensors other = read_checkpoint(GXP_TEST_DATA "/ckpt/hf_qwen2");
  other.metadata[kConfigText] = R"({"model_type": "qwen9", "tie_word_embeddings": true})";
  other.config.clear();
  write_checkpoint(other, find_format(format), dir / "out", {});
  CHECK_THAT(foreign_model(read_weights(dir / "out")), Contains("model_type is qwen9"));
  // Biases of which its config.json does not speak: all tensors stay.
  NamedTensors biased = read_checkpoint(kLlama);
  biased.tensors.push_back(counting_tensor("model.layers.0.self_attn.q_proj.bias", {4}));
  biased.config.clear();
  write_checkpoint(biased, find_format("huggingface"), dir / "biased", {});
  const NamedTensors back = read_checkpoint(dir / "biased");
  write_checkpoint(back, find_format("huggingface"), dir / "again", {});
  CHECK(digests(read_checkpoint(dir / "again")) == digests(biased));
}

TEST_CASE("dropout with which a model was trained is told", "[ckpt]") {
  const auto told = [](const std::string& folder, const json& members) {
    return describe_dropout(changed(folder, members).metadata.at(kConfigText), folder);
  };
  CHECK(told(kGpt2, {{"resid_pdrop", 0.1}, {"attn_pdrop", 0.1}}) ==
        "resid_pdrop 0.1, attn_pdrop 0.1");
  CHECK(told(kLlama, {{"attention_dropout", 0.5}}) == "attention_dropout 0.5");
  CHECK(told(kLlama, json::object()) == "");
}

}  // namespace gxp
