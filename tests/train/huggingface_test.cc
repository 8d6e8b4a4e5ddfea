// Models of tests/data/ckpt, which transformers has written, and what it computes of them.
#include <cmath>
#include <fstream>

#include "lib/ckpt/format.h"
#include "lib/config/load.h"
#include "tests/catch.h"
#include "tests/error_of.h"
#include "tests/train/golden.h"
#include "tests/train/golden_model.h"
#include "tests/train/reference_files.h"

namespace gxp {
namespace {

const std::string kModels = std::string(GXP_TEST_DATA) + "/ckpt/";

// The loss over the folder's own input, of a run whose [model] is the folder's.
double validate(const std::string& folder, const std::string& init) {
  const TemporaryDirectory directory;
  const std::string rows = directory.path() + "/rows.i32";
  const NamedTensors reference = read_checkpoint(folder + "/reference_io.safetensors");
  write_rows(rows, reference);
  std::vector<std::string> sets = {
      "model.init=" + init,  "data.train=" + rows, "data.valid=" + rows,   "data.sequence=8",
      "train.micro_batch=2", "train.threads=1",    "train.valid_batches=1"};
  for (auto [key, value] : read_checkpoint(folder).config) {
    std::erase(value, '"');
    sets.push_back(key + "=" + value);
  }
  const RunConfig config = load_config("", sets).run;
  const auto losses = run_ranks(1, [&](Communicator& communicator) {
    Backend backend = make_backend(config.train, 1);
    Trainer trainer(config, communicator, backend);
    trainer.initialise_weights();
    return trainer.validate();
  });
  return losses[0];
}

TEST_CASE("a model of transformers has the loss here that it has there", "[train]") {
  const std::string folder = kModels + GENERATE("hf_gpt2", "hf_llama_tied_gqa");
  CAPTURE(folder);
  const NamedTensors reference = read_checkpoint(folder + "/reference_io.safetensors");
  CHECK(validate(folder, folder) == Approx(read_all<float>(reference, "loss")[0]).epsilon(1e-6));
}

TEST_CASE("a run does not begin with the weights of another model", "[train]") {
  const auto [members, words] = GENERATE(table<nlohmann::json, std::string>(
      {{{{"model_type", "mixtral"}}, "model_type is mixtral"},
       {{{"final_logit_softcapping", 30.0}}, "final_logit_softcapping is 30.0"},
       {{{"rope_parameters", {{"rope_theta", 5e5}}}}, "model.rope_theta: is 10000.0, but "},
       {{{"rms_norm_eps", 0.5}}, "/config.json says 0.5"}}));
  const std::string file = GENERATE("", "/model.safetensors");
  CAPTURE(words, file);
  const TemporaryDirectory directory;
  const std::string model = directory / "model";
  std::filesystem::copy(kModels + "hf_llama_tied_gqa", model);
  nlohmann::json config = read_json(model + "/config.json");
  config.update(members);
  std::ofstream(model + "/config.json") << config;
  const Caught caught = error_of([&] { validate(kModels + "hf_llama_tied_gqa", model + file); });
  CHECK(caught.kind == ErrorKind::kConfig);
  CHECK(caught.says(model + "/config.json"));
  CHECK(caught.says(words));
}

// The gradients of the first step of llama-tiny whose head starts as its token table.
std::vector<Values> first_gradients(const std::string& init, bool tied) {
  const std::string set = std::string("model.tied_head=") + (tied ? "true" : "false");
  const RunConfig config =
      golden_config("llama-tiny", 1, {set, "model.init=" + init, "train.steps=1"});
  return train_on_ranks(config, 1)[0].first_gradients;
}

TEST_CASE("a tied head's gradient is the table's and the head's, added up", "[train]") {
  const TemporaryDirectory directory;
  const std::string init = directory.path() + "/init.safetensors";
  NamedTensors weights = read_weights(golden_path("llama-tiny", "init.safetensors"));
  const auto table = find_tensor(weights, "model.embed_tokens.weight")->read;
  for (NamedTensor& tensor : weights.tensors)
    if (tensor.info.name == "lm_head.weight") tensor.read = table;
  write_checkpoint(weights, find_format("safetensors"), init, {});
  const std::vector<Values> apart = first_gradients(init, false),
                            tied = first_gradients(init, true);
  REQUIRE(tied.size() + 1 == apart.size());
  const Values& head = apart.back();
  for (size_t i = 0; i < head.size(); ++i)
    REQUIRE(tied[0][i] == Approx(apart[0][i] + head[i]).margin(1e-7));
  for (size_t t = 1; t < tied.size(); ++t) CHECK(tied[t] == apart[t]);
}

}  // namespace
}  // namespace gxp
