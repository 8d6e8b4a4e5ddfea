#include "lib/arch/architecture.h"

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

TEST_CASE("every tensor has its own name", "[arch]") {
  const Architecture model = make_architecture(gpt2(97, 32, 64, 3, 4));
  std::set<std::string> names;
  size_t tensors = 0;
  for (const UnitSpec& unit : model.units) {
    for (const TensorSpec& tensor : unit.tensors) {
      names.insert(tensor.name);
      ++tensors;
    }
  }
  CHECK(tensors == 2 + 3 * 12 + 2);
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

TEST_CASE("an activation that is worked through in pieces is bounded", "[arch]") {
  const ActivationSpec logits{"logits", 100, 8};
  CHECK(logits.count(5) == 500);
  CHECK(logits.count(9) == 800);
}

TEST_CASE("an unknown family is a configuration error", "[arch]") {
  ModelConfig config;
  config.family = "gpt3";
  CHECK_THROWS_WITH(make_architecture(config), Catch::Contains("gpt3"));
}

}  // namespace
}  // namespace gxp
