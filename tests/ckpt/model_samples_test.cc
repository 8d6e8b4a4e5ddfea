// Directories that transformers has saved, one or more of each family: tests/data/models.
#include <algorithm>

#include "lib/arch/family.h"
#include "lib/ckpt/huggingface/config_json.h"
#include "lib/ckpt/huggingface/model_check.h"
#include "lib/ckpt/safetensors/safetensors.h"
#include "tests/catch.h"
#include "tests/ckpt/samples.h"

namespace gxp {
namespace {

namespace fs = std::filesystem;
using Catch::Matchers::Contains;

const std::string kSamples = GXP_TEST_DATA "/models/";
const std::string kOtherHead = "llama-tied-head-differs";

// Those that gxp computes.
std::vector<std::string> samples() {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(kSamples)) {
    const std::string config = entry.path() / "config.json";
    if (fs::exists(entry.path() / "model.safetensors") && fs::exists(config) &&
        describe_obstacle(read_bytes(config), config).empty())
      names.push_back(entry.path().filename());
  }
  std::ranges::sort(names);
  return names;
}

}  // namespace

TEST_CASE("a sample's tensors are those of its config.json, also after a conversion", "[ckpt]") {
  const TemporaryDirectory dir;
  const std::string sample = GENERATE(from_range(samples()));
  CAPTURE(sample);
  if (sample == kOtherHead) return;
  const NamedTensors read = read_weights(kSamples + sample);
  const ModelConfig model = model_of(read.config);
  CHECK(model_problem(read) == "");
  CHECK(unrecorded_settings(read, model) == "");
  const std::string between = GENERATE("huggingface", "gxp");
  write_checkpoint(read, find_format(between), dir / "between", {});
  write_checkpoint(read_checkpoint(dir / "between"), find_format("huggingface"), dir / "out", {});
  const NamedTensors back = read_weights(dir / "out");
  CHECK(model_mismatch(back, model) == "");
  CHECK(model_of(back.config) == model);
}

TEST_CASE("other formats take a sample's model, or refuse it by a setting", "[ckpt]") {
  const TemporaryDirectory dir;
  const std::string sample = GENERATE(from_range(samples()));
  const std::string format = GENERATE("gguf", "llmc");
  CAPTURE(sample, format);
  const NamedTensors read = read_checkpoint(kSamples + sample);
  const Caught caught =
      error_of([&] { write_checkpoint(read, find_format(format), dir / "out", {}); });
  if (!caught.kind) {
    CHECK(model_mismatch(read_weights(dir / "out"), model_of(read.config)) == "");
    return;
  }
  CHECK(caught.kind == ErrorKind::kConfig);
  CHECK_THAT(caught.message, Contains("model.") || Contains("the source is a") ||
                                 Contains("uses norm_eps") || Contains("stored and differs"));
}

TEST_CASE("a tied head that is stored is the table, alone or beside it, or is refused", "[ckpt]") {
  const NamedTensors alone = read_checkpoint(kSamples + "llama-tied-head-only");
  CHECK(find_tensor(alone, "model.embed_tokens.weight") != nullptr);
  CHECK(find_tensor(alone, "lm_head.weight") == nullptr);
  const NamedTensors equal = read_weights(kSamples + "llama-tied-head-equal");
  CHECK(model_problem(equal) == "");
  const NamedTensors other = read_weights(kSamples + kOtherHead);
  CHECK_THAT(model_problem(other), Contains("the head is tied to model.embed_tokens.weight, but "
                                            "lm_head.weight is stored and differs from it"));
}

TEST_CASE("GPT-NeoX's head may have the name that transformers 5 gives it", "[ckpt]") {
  const TemporaryDirectory dir;
  NamedTensors model = read_checkpoint(kSamples + "neox-parallel");
  for (NamedTensor& tensor : model.tensors)
    if (tensor.info.name == "embed_out.weight") tensor.info.name = "lm_head.weight";
  model.config.clear();
  model.metadata.clear();
  fs::create_directory(dir / "m");
  write_safetensors_file(model, dir / "m/model.safetensors");
  fs::copy(kSamples + "neox-parallel/config.json", dir / "m");
  for (const char* path : {"m", "m/model.safetensors"}) {
    CAPTURE(path);
    const NamedTensors read = read_weights(dir / path);
    CHECK(find_tensor(read, "embed_out.weight") != nullptr);
    CHECK(model_problem(read) == "");
  }
}

TEST_CASE("buffers of old files are no weights of their family", "[ckpt]") {
  const auto [sample, name, is_weight] = GENERATE(table<std::string, std::string, bool>(
      {{"gpt2-untied", "transformer.h.0.attn.masked_bias", false},
       {"neox-parallel", "gpt_neox.layers.0.attention.bias", false},
       {"neox-parallel", "gpt_neox.layers.1.attention.masked_bias", false},
       {"neox-parallel", "gpt_neox.layers.1.attention.rotary_emb.inv_freq", false},
       {"neox-parallel", "gpt_neox.layers.1.attn.bias", true},
       {"phi", "model.layers.0.attention.bias", true}}));
  NamedTensors read = read_weights(kSamples + sample);
  read.tensors.push_back(counting_tensor(name, {2}));
  CAPTURE(sample, name);
  CHECK(model_problem(read).empty() != is_weight);
}

TEST_CASE("a GPT-2 of gxp 0.1, which did not tell its head, is tied", "[ckpt]") {
  NamedTensors read = read_checkpoint(GXP_TEST_DATA "/ckpt/hf_gpt2");
  const ModelConfig model = model_of(read.config);
  std::erase_if(read.config, [](const auto& pair) { return pair.first == "model.activation"; });
  for (auto& [key, value] : read.config)
    if (key == "model.tied_head") value = "false";
  read.metadata.clear();
  CHECK(model_mismatch(read, model) == "");
}

}  // namespace gxp
