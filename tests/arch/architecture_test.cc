#include "lib/arch/architecture.h"

#include <algorithm>
#include <set>
#include <string>

#include "lib/base/error.h"
#include "tests/catch.h"

namespace gxp {
namespace {

ModelConfig gpt2(int vocab_size, int context, int hidden, int layers, int heads) {
  ModelConfig config;
  config.vocab_size = vocab_size;
  config.context = context;
  config.hidden = hidden;
  config.layers = layers;
  config.heads = heads;
  return config;
}

ModelConfig llama(int vocab_size, int hidden, int layers, int heads, int kv_heads, int mlp_hidden) {
  ModelConfig config = gpt2(vocab_size, 2048, hidden, layers, heads);
  config.family = "llama";
  config.kv_heads = kv_heads;
  config.mlp_hidden = mlp_hidden;
  return config;
}

struct KnownSize {
  ModelConfig config;
  size_t parameters;
};

TEST_CASE("a GPT-2's parameter count is the published one", "[arch]") {
  // The four sizes of Radford et al. as Hugging Face counts them, and the models of
  // tests/data/train.
  const auto known =
      GENERATE(KnownSize{gpt2(50257, 1024, 768, 12, 12), 124439808},
               KnownSize{gpt2(50257, 1024, 1024, 24, 16), 354823168},
               KnownSize{gpt2(50257, 1024, 1280, 36, 20), 774030080},
               KnownSize{gpt2(50257, 1024, 1600, 48, 25), 1557611200},
               KnownSize{gpt2(97, 32, 64, 2, 4), 108352}, KnownSize{gpt2(61, 24, 32, 1, 4), 15488});
  CHECK(make_architecture(known.config).parameter_count() == known.parameters);
}

TEST_CASE("a Llama's parameter count is the published one", "[arch]") {
  // Llama 2 7B, Llama 3 8B, and tied ones: Llama 3.2 1B and TinyLlama's shape.
  ModelConfig tied = llama(128256, 2048, 16, 32, 8, 8192);
  tied.tied_head = true;
  const auto known = GENERATE_COPY(KnownSize{llama(32000, 4096, 32, 32, 32, 11008), 6738415616},
                                   KnownSize{llama(32000, 4096, 32, 32, 0, 0), 6738415616},
                                   KnownSize{llama(128256, 4096, 32, 32, 8, 14336), 8030261248},
                                   KnownSize{llama(32000, 2048, 22, 32, 4, 5632), 1100048384},
                                   KnownSize{tied, 1235814400});
  CHECK(make_architecture(known.config).parameter_count() == known.parameters);
}

TEST_CASE("every tensor has its own name", "[arch]") {
  const auto [config, per_block, others] = GENERATE(table<ModelConfig, size_t, size_t>(
      {{gpt2(97, 32, 64, 3, 4), 12, 4}, {llama(97, 64, 3, 4, 2, 0), 9, 3}}));
  const Architecture model = make_architecture(config);
  std::set<std::string> names;
  size_t tensors = 0;
  for (const UnitSpec& unit : model.units) {
    for (const TensorSpec& tensor : unit.tensors) {
      names.insert(tensor.name);
      ++tensors;
    }
  }
  CHECK(tensors == 3 * per_block + others);
  CHECK(names.size() == tensors);
}

TEST_CASE("matrices and embeddings decay, norms and biases do not", "[arch]") {
  const Architecture model = make_architecture(gpt2(97, 32, 64, 1, 4));
  for (const UnitSpec& unit : model.units) {
    for (const TensorSpec& tensor : unit.tensors) {
      const bool vector =
          tensor.name.ends_with("bias") || tensor.name.find("ln_") != std::string::npos;
      CHECK(tensor.decays() != vector);
    }
  }
}

TEST_CASE("the FLOPs of a token count multiplied parameters six times and half of attention",
          "[arch]") {
  const Architecture model = make_architecture(gpt2(256, 256, 256, 4, 4));
  CHECK(model.train_flops_per_token(256) == 6.0 * (3290624 - 256 * 256) + 6.0 * 4 * 256 * 256);
}

TEST_CASE("the FLOPs of a Llama's token leave out a table that is only looked up", "[arch]") {
  ModelConfig config = llama(256, 256, 4, 4, 1, 512);
  config.head_size = 32;  // queries are half as wide as the residual stream
  const double block = 2.0 * 256 * 128 + 2.0 * 256 * 32 + 3.0 * 256 * 512 + 2 * 256;
  const double expected = 6.0 * (4 * block + 256 + 256 * 256) + 6.0 * 4 * 128 * 100;
  CHECK(make_architecture(config).train_flops_per_token(100) == expected);
  config.tied_head = true;
  CHECK(make_architecture(config).train_flops_per_token(100) == expected);
}

TEST_CASE("an activation that is worked through in pieces is bounded", "[arch]") {
  const ActivationSpec logits{"logits", 100, 8};
  CHECK(logits.count(5) == 500);
  CHECK(logits.count(9) == 800);
}

TEST_CASE("a head works through as many tokens at a time as it is told", "[arch]") {
  ModelConfig config;
  config.family = GENERATE(from_range(family_names()));
  config.vocab_size = 100;
  Architecture architecture = make_architecture(config);
  set_logits_rows(architecture, 7);
  for (const auto& scratch :
       {architecture.units.back().forward_scratch, architecture.units.back().backward_scratch}) {
    const auto logits = std::ranges::find(scratch, "logits", &ActivationSpec::name);
    REQUIRE(logits != scratch.end());
    CHECK(logits->count(50) == 700);
  }
}

TEST_CASE("an unknown family is a configuration error", "[arch]") {
  ModelConfig config;
  config.family = "gpt3";
  CHECK_THROWS_WITH(make_architecture(config), Catch::Contains("gpt3"));
}

}  // namespace
}  // namespace gxp
