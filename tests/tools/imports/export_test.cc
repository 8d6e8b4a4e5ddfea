#include "lib/tools/imports/export_deepspeed.h"

#include <algorithm>
#include <fstream>

#include "lib/config/load.h"
#include "lib/config/print.h"
#include "lib/tools/imports/run_file.h"
#include "tests/catch.h"
#include "tests/temporary_directory.h"

namespace gxp {
namespace {

RunConfig run_of(const std::string& settings) {
  return parse_config("data.train = ['a']\n" + settings, "run.toml").run;
}

// What DeepSpeed knows of a run.
std::vector<std::string> deepspeed_settings(const RunConfig& run) {
  std::vector<std::string> lines;
  for (const auto& [name, value] : flatten(run)) {
    const bool is_theirs = name.starts_with("optim.") || name.starts_with("lr_schedule.") ||
                           name.starts_with("parallel.") || name.starts_with("offload.") ||
                           name.starts_with("fp16.") || name == "comm.codec" ||
                           name == "comm.gather_codec" || name == "train.micro_batch" ||
                           name == "train.grad_accum" || name == "train.precision" ||
                           name == "train.grad_accum_dtype" || name == "train.log_every";
    if (is_theirs) lines.push_back(name + " = " + value);
  }
  return lines;
}

RunConfig round_trip(const RunConfig& run) {
  const TemporaryDirectory directory;
  const std::string path = directory / "ds.json";
  const DeepSpeedExport made = export_deepspeed(run);
  CHECK(made.refused.empty());
  std::ofstream(path) << made.json;
  const ImportResult result = import_file({.path = path});
  CAPTURE(made.json);
  CHECK(result.errors.empty());
  const std::vector<std::string> sets = {"data.train=a"};
  return parse_config(to_run_file(result, sets), "run.toml").run;
}

}  // namespace

TEST_CASE("a run that goes to DeepSpeed and back has the same settings", "[imports]") {
  const std::string settings = GENERATE(
      "optim.decay_vectors = true\nlr_schedule.name = 'constant'\n",
      "optim = {name = 'adam', lr = 3e-4, beta1 = 0.8, decay_vectors = true}\n"
      "lr_schedule = {name = 'linear', warmup_steps = 10, total_steps = 100}\n"
      "parallel.strategy = 'zero2'\ntrain = {precision = 'bf16', grad_accum = 3}\n",
      "optim = {decay_vectors = true, clip = 0.0}\n"
      "lr_schedule = {name = 'cosine', warmup_steps = 10, total_steps = 100, min_lr = 3e-4}\n"
      "train = {precision = 'fp16', micro_batch = 2, log_every = 7}\n"
      "fp16 = {initial_scale_power = 12, window = 500, hysteresis = 3, min_scale = 2.0}\n"
      "parallel = {strategy = 'zero3', reduce_dtype = 'fp16', persist_params = 5, reuse_params = 6,"
      " prefetch_params = 7, max_live_params = 8}\n"
      "offload = {optimizer = 'memory', parameters = 'memory', step_tile = 4096}\n",
      "optim = {name = 'sgd', momentum = 0.9, nesterov = true, decay_vectors = true}\n"
      "lr_schedule = {name = 'warmup', warmup_steps = 5}\nparallel.bucket_bytes = 4096\n",
      "optim = {name = 'lion', weight_decay = 0.3, decay_vectors = true}\n"
      "lr_schedule.name = 'constant'\n"
      "parallel = {strategy = 'zero3_hpz', shard_size = 2}\n"
      "offload = {optimizer = 'file', path = '/nvme', ratio = 0.5}\n",
      "optim.decay_vectors = true\nlr_schedule.name = 'constant'\n"
      "parallel.strategy = 'zero3'\ncomm = {codec = 'int4', gather_codec = 'int8'}\n");
  RunConfig run = run_of(settings);
  CAPTURE(settings);
  RunConfig back = round_trip(run);
  if (run.parallel.strategy == "full_shard") run.parallel.strategy = "zero3";
  CHECK(deepspeed_settings(back) == deepspeed_settings(run));
}

TEST_CASE("what DeepSpeed cannot do is refused by the setting's name", "[imports]") {
  const auto [settings, name] = GENERATE(table<std::string, std::string>(
      {{"optim.name = 'adafactor'", "optim.name"},
       {"", "optim.decay_vectors"},
       {"optim.state_dtype = 'bf16'", "optim.state_dtype"},
       {"lr_schedule.name = 'wsd'", "lr_schedule.name"},
       {"lr_schedule = {name = 'linear', min_lr = 1e-5}", "lr_schedule.min_lr"},
       {"lr_schedule.name = 'cosine'", "lr_schedule.warmup_steps"},
       {"parallel.strategy = 'shard_grad_op'", "parallel.strategy"},
       {"parallel.wrap = 'none'", "parallel.wrap"},
       {"train.matmul = 'tf32'", "train.matmul"},
       {"parallel.strategy = 'zero3'\ncomm.gather_codec = 'int4'", "comm.gather_codec"},
       {"parallel.strategy = 'zero2'\noffload = {optimizer = 'file', path = 'x'}",
        "offload.optimizer"}}));
  const std::vector<std::string> refused = export_deepspeed(run_of(settings)).refused;
  CAPTURE(settings, refused);
  CHECK(std::ranges::any_of(
      refused, [&](const std::string& text) { return text.starts_with(name + ": "); }));
}

TEST_CASE("settings of the training program are listed, not refused", "[imports]") {
  const DeepSpeedExport made = export_deepspeed(
      run_of("optim.decay_vectors = true\nlr_schedule.name = 'constant'\ntrain.seed = 3\n"));
  CHECK(made.refused.empty());
  CHECK(made.left_out == std::vector<std::string>{"data.train", "train.seed"});
}

}  // namespace gxp
