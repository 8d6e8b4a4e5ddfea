#include "lib/ckpt/torch/optimizer_settings.h"

#include "lib/ckpt/format.h"
#include "tests/catch.h"
#include "tests/ckpt/torch_samples.h"

namespace gxp {
namespace {

// What groups with these settings put into a run's configuration and state.
NamedTensors settings_of_groups(const std::vector<std::vector<OptimizerSetting>>& groups) {
  PickleWriter pickle;
  pickle.begin_list();
  for (const auto& group : groups) {
    pickle.begin_dict();
    for (const OptimizerSetting& setting : group) {
      pickle.text(setting.key);
      put_setting(pickle, setting);
    }
    pickle.end_dict();
  }
  pickle.end_list();
  const TemporaryDirectory dir;
  const Pickle read = Pickle::read(range_of(dir, pickle.finish()));
  OptimizerGroups settings;
  settings.add_all(read.root(), "groups");
  NamedTensors result;
  settings.finish(result);
  return result;
}

}  // namespace

TEST_CASE("the optimizer's settings are read from every format that has them", "[ckpt]") {
  const std::string fixture =
      GENERATE("dcp_fsdp2", "torch_pt/train_ckpt.pt", "ds_zero1_fp32", "ds_zero2_bf16",
               "ds_zero3_bf16", "ds_zero2_bf16_universal", "ds_zero3_bf16_universal");
  CAPTURE(fixture);
  const NamedTensors read = read_checkpoint(GXP_TEST_DATA "/ckpt/" + fixture);
  CHECK(find_value(read.config, "optim.name") == "\"adamw\"");
  CHECK(find_value(read.config, "optim.beta1") == "0.9");
  CHECK(find_value(read.config, "optim.beta2") == "0.999");
  CHECK(find_value(read.config, "optim.eps") == "1e-08");
  CHECK(find_value(read.config, "optim.weight_decay") == "0.1");
  const bool is_one_group = fixture == "torch_pt/train_ckpt.pt";  // with a scheduler
  CHECK(find_value(read.config, "optim.lr").has_value() == is_one_group);
  CHECK(find_value(read.state, kLastRate) == (is_one_group ? "0.001" : "0.01"));
  CHECK(find_value(read.config, "optim.decay_vectors") == (is_one_group ? "true" : "false"));
}

TEST_CASE("settings are written as they are read", "[ckpt]") {
  const std::string vectors = GENERATE("false", "true");
  const KeyValues config = {{"optim.beta1", "0.8"},           {"optim.beta2", "0.99"},
                            {"optim.eps", "1e-07"},           {"optim.name", "\"adam\""},
                            {"optim.decay_vectors", vectors}, {"optim.weight_decay", "0.25"}};
  std::vector<std::vector<OptimizerSetting>> groups = {adam_settings(config, true)};
  if (vectors == "false") groups.push_back(adam_settings(config, false));
  const NamedTensors read = settings_of_groups(groups);
  CHECK(read.config == config);
  CHECK(read.state == KeyValues{{std::string(kLastRate), "0.001"}});
}

TEST_CASE("of settings that differ among the groups none is taken", "[ckpt]") {
  const NamedTensors read =
      settings_of_groups({{{"lr", 0.1}, {"eps", 0.5}, {"weight_decay", 0.1}},
                          {{"lr", 0.2}, {"eps", 0.5}, {"weight_decay", 0.0}}});
  CHECK(read.config == KeyValues{{"optim.eps", "0.5"},
                                 {"optim.decay_vectors", "false"},
                                 {"optim.weight_decay", "0.1"}});
  CHECK_FALSE(find_value(read.state, kLastRate));
}

TEST_CASE("settings of another kind than numbers are passed over", "[ckpt]") {
  const NamedTensors read =
      settings_of_groups({{{"eps"}, {"betas", 0.9}, {"lr"}, {"foreach", true}}});
  CHECK(read.config.empty());
  CHECK(read.state.empty());
}

}  // namespace gxp
