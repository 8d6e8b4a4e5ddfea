// `gxp train --import` and `--export` as their users run them, and the runs that come of them.
#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/catch.h"
#include "tests/cmd/run_gxp.h"
#include "tests/temporary_directory.h"

namespace gxp {
namespace {

using nlohmann::json;

const std::string kZero2 = R"({
  "fp16": {"enabled": true, "loss_scale": 0, "loss_scale_window": 1000, "initial_scale_power": 16,
           "hysteresis": 2, "min_loss_scale": 1},
  "optimizer": {"type": "AdamW", "params": {"lr": "auto", "weight_decay": "auto",
                "torch_adam": true, "adam_w_mode": true}},
  "scheduler": {"type": "WarmupDecayLR", "params": {"warmup_min_lr": "auto",
                "warmup_max_lr": "auto", "warmup_num_steps": "auto", "total_num_steps": "auto"}},
  "zero_optimization": {"stage": 2, "allgather_partitions": true, "allgather_bucket_size": 2e8,
                        "overlap_comm": true, "reduce_scatter": true,
                        "reduce_bucket_size": "auto", "contiguous_gradients": true},
  "gradient_accumulation_steps": 1, "gradient_clipping": "auto", "steps_per_print": 2000,
  "train_batch_size": "auto", "train_micro_batch_size_per_gpu": "auto",
  "wall_clock_breakdown": false})";

const std::string kZero3Block = R"({
  "stage": 3, "offload_optimizer": {"device": "cpu", "pin_memory": true},
  "offload_param": {"device": "cpu", "pin_memory": true}, "overlap_comm": true,
  "contiguous_gradients": true, "sub_group_size": 1e9, "reduce_bucket_size": "auto",
  "stage3_prefetch_bucket_size": "auto", "stage3_param_persistence_threshold": "auto",
  "stage3_max_live_parameters": 1e9, "stage3_max_reuse_distance": 1e9,
  "stage3_gather_16bit_weights_on_model_save": "auto"})";

const std::string kPlugin = R"(compute_environment: LOCAL_MACHINE
deepspeed_config:
  deepspeed_config_file: zero3.json
  zero3_init_flag: true
distributed_type: DEEPSPEED
mixed_precision: fp16
num_processes: 2
)";

const std::string kFsdp = R"(compute_environment: LOCAL_MACHINE
distributed_type: FSDP
fsdp_config:
  fsdp_auto_wrap_policy: TRANSFORMER_BASED_WRAP
  fsdp_backward_prefetch_policy: BACKWARD_PRE
  fsdp_offload_params: false
  fsdp_sharding_strategy: 1
  fsdp_state_dict_type: FULL_STATE_DICT
  fsdp_transformer_layer_cls_to_wrap: GPT2Block
mixed_precision: 'no'
num_machines: 1
num_processes: 2
)";

// The files above and a text to train on.
class LauncherFiles {
 public:
  LauncherFiles() {
    json zero3 = json::parse(kZero2);
    zero3["zero_optimization"] = json::parse(kZero3Block);
    write("zero2.json", kZero2);
    write("zero3.json", zero3.dump());
    write("plugin.yaml", kPlugin);
    write("fsdp.yaml", kFsdp);
    write("corpus.txt", std::string(4096, 'a'));
  }
  [[nodiscard]] std::string path(const std::string& name) const { return directory_ / name; }
  void write(const std::string& name, const std::string& text) const {
    std::ofstream(path(name)) << text;
  }
  // Imports the file as a run of a tiny model, and what else `more` says.
  [[nodiscard]] Outcome import(const std::string& name, const Arguments& more = {}) const {
    return run_gxp(
        Arguments{"train", "--import", path(name), "-o", path("run.toml")} +
        set_all({"model.hidden=16", "model.layers=1", "model.heads=2", "train.steps=2",
                 "data.sequence=16", "train.device=cpu", "data.train=" + path("corpus.txt")}) +
        more);
  }

 private:
  TemporaryDirectory directory_;
};

}  // namespace

TEST_CASE("the files of DeepSpeed and accelerate import, and run on two ranks", "[cmd]") {
  const std::string name = GENERATE("zero2.json", "zero3.json", "plugin.yaml", "fsdp.yaml");
  const LauncherFiles files;
  const Outcome imported = files.import(name, {"--nproc", "2"});
  CAPTURE(name, imported.out, imported.err);
  REQUIRE(imported.code == 0);
  CHECK(imported.err.find("still to be set") == std::string::npos);
  const Outcome run = run_gxp({"train", files.path("run.toml"), "--nproc", "2"});
  CAPTURE(run.err);
  CHECK(run.code == 0);
  CHECK(run.err.find("step 2/2") != std::string::npos);
}

TEST_CASE("a refused key ends an import with code 2 and without a run file", "[cmd]") {
  const LauncherFiles files;
  files.write("bad.json", R"({"train_batch_size": 8, "zero_optimization": {"stage": 4}})");
  const Outcome outcome = files.import("bad.json", {"--format", "json", "--nproc", "2"});
  CHECK(outcome.code == 2);
  CHECK(outcome.err.find("zero_optimization.stage: stages are 0 to 3") != std::string::npos);
  CHECK(json::parse(outcome.out)["imports"] == false);
  CHECK_FALSE(std::ifstream(files.path("run.toml")).good());
}

TEST_CASE("without --output the run file goes to stdout, and the report to stderr", "[cmd]") {
  const LauncherFiles files;
  const Outcome outcome =
      run_gxp({"train", "--import", files.path("fsdp.yaml"), "--set", "train.precision=float16"});
  CHECK(outcome.code == 0);
  CHECK(outcome.out.find("precision = \"fp16\" ") != std::string::npos);
  CHECK(outcome.err.find("fsdp_config.fsdp_sharding_strategy") != std::string::npos);
  CHECK(outcome.err.find("start it with: gxp train run.toml --nproc 2") != std::string::npos);
  CHECK(outcome.err.find("data.train: must name at least one file") != std::string::npos);
}

TEST_CASE("a run goes to DeepSpeed's JSON, or is refused by the setting's name", "[cmd]") {
  const LauncherFiles files;
  REQUIRE(files.import("zero2.json", {"--nproc", "2"}).code == 0);
  const Arguments export_run = {"train", files.path("run.toml"), "--export", "deepspeed", "--set"};
  const auto run_with = [&](const char* set) {
    Arguments arguments = export_run;
    arguments.emplace_back(set);
    return run_gxp(arguments);
  };
  const Outcome good = run_with("lr_schedule.warmup_steps=2");
  CAPTURE(good.err);
  REQUIRE(good.code == 0);
  CHECK(json::parse(good.out)["zero_optimization"]["stage"] == 2);
  CHECK(good.err.find("the training program's: model.hidden") != std::string::npos);
  const Outcome bad = run_with("optim.name=adafactor");
  CHECK(bad.code == 2);
  CHECK(bad.err.find("optim.name: DeepSpeed has no adafactor") != std::string::npos);
}

}  // namespace gxp
