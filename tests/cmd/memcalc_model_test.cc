// gxp memcalc MODEL where MODEL is a file: a Hugging Face config.json or safetensors.
#include <filesystem>

#include "lib/base/json/json.h"
#include "lib/base/text_file.h"
#include "lib/tools/planner/model_file.h"
#include "tests/catch.h"
#include "tests/ckpt/samples.h"
#include "tests/cmd/golden_run.h"
#include "tests/cmd/run_memcalc.h"

namespace gxp {
namespace {

// A Hugging Face config.json with `changes`.
std::string make_config(const TemporaryDirectory& scratch, const Json& changes) {
  Json config = {{"model_type", "llama"},        {"hidden_size", 4096},
                 {"num_hidden_layers", 32},      {"num_attention_heads", 32},
                 {"num_key_value_heads", 8},     {"intermediate_size", 14336},
                 {"vocab_size", 128256},         {"max_position_embeddings", 8192},
                 {"tie_word_embeddings", false}, {"torch_dtype", "bfloat16"}};
  config.merge_patch(changes);
  const std::string path = scratch / "config.json";
  make_file(path, config.dump());
  return path;
}

TEST_CASE("memcalc counts a config.json's model as its published one", "[cmd]") {
  const TemporaryDirectory scratch;
  const auto [changes, count] = GENERATE(table<const char*, uint64_t>(
      {{"{}", 8030261248},
       {R"({"model_type": "mistral", "vocab_size": 32000})", 7241732096},
       {R"({"model_type": "qwen2", "hidden_size": 896, "num_hidden_layers": 24,
            "num_attention_heads": 14, "num_key_value_heads": 2, "intermediate_size": 4864,
            "vocab_size": 151936, "tie_word_embeddings": true})",
        494032768},
       {R"({"model_type": "qwen3", "hidden_size": 1024, "num_hidden_layers": 28,
            "num_attention_heads": 16, "head_dim": 128, "intermediate_size": 3072,
            "vocab_size": 151936, "tie_word_embeddings": true})",
        596049920},
       {R"({"model_type": "gemma", "hidden_size": 2048, "num_hidden_layers": 18,
            "num_attention_heads": 8, "num_key_value_heads": 1, "head_dim": 256,
            "intermediate_size": 16384, "vocab_size": 256000, "tie_word_embeddings": null})",
        2506172416},
       {R"({"model_type": "gpt2", "hidden_size": null, "num_hidden_layers": null, "num_attention_heads": null,
           "num_key_value_heads": null, "intermediate_size": null, "max_position_embeddings": null, "n_embd": 768, "n_layer": 12, "n_head": 12, "n_positions": 1024,
            "vocab_size": 50257, "tie_word_embeddings": null})",
        124439808}}));
  const std::string path = make_config(scratch, Json::parse(changes));
  for (const std::string& model : {path, scratch / ""}) {
    const Json report = memcalc_json({model, "--sequence", "1024"});
    CHECK(report["parameters"] == count);
    CHECK(report["dtype"] == "bfloat16");
    CHECK(report["results"][0]["activations_bytes"] > 0);
  }
}

TEST_CASE("memcalc counts what transformers makes of a config.json", "[cmd]") {
  const TemporaryDirectory scratch;
  const std::string path = scratch / "config.json";
  const std::string table = GXP_TEST_DATA "/ckpt/config_counts/counts.json";
  for (const Json& row : Json::parse(read_text_file(table, 1 << 20))) {
    make_file(path, row["config"].dump());
    const ModelFile file = read_model_file(path);
    CAPTURE(row.dump());
    CHECK(file.parameters == row["parameters"]);
    CHECK(parameter_count(*file.shape) == file.parameters);
    uint64_t of_units = 0;
    for (const auto& unit : unit_shapes(*file.shape)) {
      for (const TensorShape& shape : unit) of_units += count_of(shape);
    }
    CHECK(of_units == file.parameters);
  }
}

TEST_CASE("memcalc names a class without a language model's head, and predicts none for it",
          "[cmd]") {
  const TemporaryDirectory scratch;
  const std::string reward = make_config(
      scratch, {{"architectures", {"LlamaForSequenceClassification"}}, {"num_labels", 1}});
  const Json report = memcalc_json({reward});
  CHECK(report["parameters"] == 7504928768);
  CHECK(report["architecture"] == "LlamaForSequenceClassification");
  for (const Arguments& more : {Arguments{"--sequence", "1024"},
                                Arguments{"--limit", "40GB", "--solve", "seq", "--stage", "3"}}) {
    const Outcome outcome = memcalc(Arguments{reward} + more);
    CHECK(outcome.code == 2);
    CHECK(contains(outcome.err, "is LlamaForSequenceClassification, whose head"));
  }
  const Outcome planned = run_gxp({"shard-plan", reward, "--cluster", "dgx-h100"});
  CHECK(planned.code == 2);
  CHECK(contains(planned.err, "steps are predicted for language models"));
}

TEST_CASE("memcalc counts the tensors of safetensors files without reading them", "[cmd]") {
  const std::string data = GXP_TEST_DATA "/ckpt/";
  const Json one = memcalc_json({data + "hf_qwen2/model.safetensors"});
  const Json sharded = memcalc_json({data + "safetensors_sharded"});
  CHECK(one["parameters"] > 0);
  CHECK(sharded["parameters"] > 0);
  CHECK(one["stored_bytes"] > one["parameters"]);
  const Json both = memcalc_json({data + "hf_gpt2", "--sequence", "8"});
  CHECK(both["family"] == "gpt2");
}

// A file of tensors of zeros.
std::string make_weights(const TemporaryDirectory& scratch, const std::string& name,
                         const std::vector<std::tuple<std::string, std::string, int>>& tensors) {
  Json header = Json::object();
  int end = 0;
  for (const auto& [tensor, dtype, bytes] : tensors) {
    const int elements = dtype == "F32" || dtype == "I32" ? bytes / 4 : bytes;
    const Json shape = tensor.ends_with(".attn.bias") ? Json{1, 1, 1, elements} : Json{elements};
    header[tensor] = {{"dtype", dtype}, {"shape", shape}, {"data_offsets", {end, end + bytes}}};
    end += bytes;
  }
  const std::string text = header.dump();
  std::string file(8, '\0');
  for (size_t i = 0; i < 8; ++i) file[i] = char(text.size() >> (8 * i) & 0xff);
  const std::string path = scratch / name;
  make_file(path, file + text + std::string(size_t(end), '\0'));
  return path;
}

TEST_CASE("memcalc counts parameters alone, or refuses files that do not tell them", "[cmd]") {
  const TemporaryDirectory scratch;
  const std::string buffers = make_weights(scratch, "model.safetensors",
                                           {{"wte.weight", "F32", 400},
                                            {"h.0.attn.bias", "F32", 64},
                                            {"h.0.attn.masked_bias", "F32", 4},
                                            {"h.0.rotary_emb.inv_freq", "F32", 16},
                                            {"a.weight", "F8_E4M3", 50},
                                            {"a.weight_scale_inv", "F32", 4}});
  CHECK(memcalc_json({buffers})["parameters"] == 150);
  const auto [name, tensor, dtype, words] =
      GENERATE(table<std::string, std::string, std::string, std::string>(
          {{"a.safetensors", "l.0.q_proj.qweight", "I32", "of quantized weights"},
           {"a.safetensors", "l.0.up_proj.weight", "U8", "of quantized weights"},
           {"a.safetensors", "l.0.q_proj.lora_A.weight", "F32", "of an adapter"},
           {"model-00001-of-00002.safetensors", "w", "F32", "one of several files"}}));
  const Outcome outcome = memcalc({make_weights(scratch, name, {{tensor, dtype, 8}})});
  CHECK(outcome.code == 2);
  CHECK(contains(outcome.err, words));
}

TEST_CASE("memcalc refuses a model's file in one line that says why", "[cmd]") {
  const TemporaryDirectory scratch;
  const auto [changes, code, words] = GENERATE(table<const char*, int, std::string>(
      {{R"({"model_type": "mixtral"})", 2,
        "model_type is mixtral; supported: gpt2, gpt_neox, llama"},
       {R"({"model_type": null})", 2, "model_type is absent"},
       {R"({"architectures": ["LlamaForRewardModel"]})", 2, "architectures is LlamaForRewardModel"},
       {R"({"architectures": ["GPT2DoubleHeadsModel"]})", 2, "GPT2DoubleHeadsModel"},
       {R"({"model_type": "gpt2", "num_key_value_heads": null, "intermediate_size": null,
           "add_cross_attention": true})",
        2, "add_cross_attention is true"},
       {R"({"model_type": "t5", "is_encoder_decoder": true})", 2, "model_type is t5"},
       {R"({"hidden_size": "wide"})", 2, "hidden_size is wide, not a positive number"},
       {R"({"num_hidden_layers": 0})", 2, "num_hidden_layers is 0"},
       {R"({"num_key_value_heads": 5})", 2,
        "num_key_value_heads is 5, which does not divide 32 heads"},
       {R"({"model_type": "qwen2", "num_attention_heads": 4, "num_key_value_heads": null})", 2,
        "num_key_value_heads is 32, the class's default, which does not divide 4 heads"},
       {R"({"hidden_size": 16000000, "vocab_size": 16000000, "head_dim": 16000000})", 2,
        "must be from 1 to 1048576, is 16000000"}}));
  const Outcome outcome = memcalc({make_config(scratch, Json::parse(changes))});
  CAPTURE(outcome.err);
  CHECK(outcome.code == code);
  CHECK(outcome.out.empty());
  REQUIRE(outcome.errors().size() == 1);
  CHECK(contains(outcome.errors()[0], words));
  CHECK(memcalc({scratch / "none/config.json"}).code == 4);
  CHECK(memcalc({scratch / ".."}).code == 4);
}

}  // namespace
}  // namespace gxp
