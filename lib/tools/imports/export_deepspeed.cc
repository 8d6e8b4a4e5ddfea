#include "lib/tools/imports/export_deepspeed.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>

#include "lib/arch/optimizers.h"
#include "lib/config/settings.h"
#include "lib/config/strategy.h"
#include "lib/tools/imports/source.h"

namespace gxp {
namespace {

class DeepSpeedWriter {
 public:
  explicit DeepSpeedWriter(const RunConfig& run) : run_(run) {}

  DeepSpeedExport write() && {
    say_batch();
    say_precision();
    say_optimizer();
    say_schedule();
    say_sharding();
    say_gathers();
    say_codecs();
    say_offload();
    judge_the_rest();
    return {tree_.dump(2) + "\n", std::move(refused_), std::move(left_out_)};
  }

 private:
  void refuse(const std::string& setting, std::string_view why) {
    said_.insert(setting);
    refused_.push_back(fmt::format("{}: {}", setting, why));
  }
  void say(std::initializer_list<const char*> settings) {
    said_.insert(settings.begin(), settings.end());
  }

  void say_batch() {
    say({"train.micro_batch", "train.grad_accum", "train.global_batch", "optim.clip",
         "train.log_every"});
    tree_["train_micro_batch_size_per_gpu"] = run_.train.micro_batch;
    if (run_.train.global_batch == 0)
      tree_["gradient_accumulation_steps"] = run_.train.grad_accum;
    else if (run_.train.grad_accum == 1)
      tree_["train_batch_size"] = run_.train.global_batch;  // DeepSpeed makes the steps of it, too
    else
      refuse("train.grad_accum", "train.global_batch decides it; leave one of them out");
    tree_["gradient_clipping"] = run_.optim.clip;
    tree_["steps_per_print"] = run_.train.log_every;
  }

  void say_precision() {
    say({"train.precision", "train.grad_accum_dtype", "parallel.reduce_dtype",
         "fp16.initial_scale_power", "fp16.window", "fp16.hysteresis",
         "fp16.consecutive_hysteresis", "fp16.min_scale"});
    if (run_.train.precision == NumberType::kBf16) tree_["bf16"]["enabled"] = true;
    if (run_.train.precision == NumberType::kFp16) {
      const Fp16Config& fp16 = run_.fp16;
      tree_["fp16"] = {{"enabled", true},
                       {"loss_scale", 0},
                       {"initial_scale_power", fp16.initial_scale_power},
                       {"loss_scale_window", fp16.window},
                       {"hysteresis", fp16.hysteresis},
                       {"consecutive_hysteresis", fp16.consecutive_hysteresis},
                       {"min_loss_scale", fp16.min_scale}};
      if (fp16.min_scale != double(int64_t(fp16.min_scale)))
        refuse("fp16.min_scale", "DeepSpeed takes whole numbers");
      else
        tree_["fp16"]["min_loss_scale"] = int64_t(fp16.min_scale);
    }
    tree_["communication_data_type"] = run_.parallel.reduce_dtype.word();
    tree_["data_types"]["grad_accum_dtype"] = run_.train.grad_accum_dtype.word();
  }

  void say_optimizer() {
    const OptimConfig& optim = run_.optim;
    say({"optim.name", "optim.lr", "optim.weight_decay", "optim.decay_vectors"});
    SourceTree params = {{"lr", optim.lr}, {"weight_decay", optim.weight_decay}};
    const bool is_adam = optim.name == "adamw" || optim.name == "adam";
    std::string type;
    if (is_adam || optim.name == "lion") {
      type = is_adam ? optim.name == "adam" ? "Adam" : "AdamW" : "Lion";
      say({"optim.beta1", "optim.beta2", "optim.eps"});
      params["betas"] = {optim.beta1, optim.beta2};
      if (is_adam) params["eps"] = optim.eps;
      if (optim.name == "adam") params["adam_w_mode"] = false;
    } else if (optim.name == "sgd") {
      type = "SGD";
      say({"optim.momentum", "optim.dampening", "optim.nesterov"});
      params["momentum"] = optim.momentum;
      params["dampening"] = optim.dampening;
      params["nesterov"] = optim.nesterov;
    } else if (optim.name == "muon" && optim.nesterov) {
      type = "Muon";
      say({"optim.momentum", "optim.nesterov", "optim.adamw_lr_ratio"});
      params["momentum"] = optim.momentum;
      params["adam_lr"] = optim.lr * optim.adamw_lr_ratio;
    } else {
      refuse("optim.name", "DeepSpeed has no " + optim.name + " of this form");
    }
    // All parameters are one group there; of Muon's, vectors are never decayed by gxp.
    if (!optim.decay_vectors && optim.weight_decay > 0 && optim.name != "muon")
      refuse("optim.decay_vectors",
             "DeepSpeed decays vectors, too: set it to true, or optim.weight_decay to 0");
    tree_["optimizer"] = {{"type", type}, {"params", std::move(params)}};
  }

  void say_schedule() {
    const LrScheduleConfig& schedule = run_.lr_schedule;
    say({"lr_schedule.name", "lr_schedule.warmup_steps", "lr_schedule.total_steps",
         "lr_schedule.min_lr"});
    const bool is_flat = schedule.name == "constant" || schedule.name == "warmup";
    if (is_flat && schedule.warmup_steps == 0) return;
    SourceTree params = {{"warmup_num_steps", schedule.warmup_steps}, {"warmup_type", "linear"}};
    std::string type = "WarmupLR";
    if (schedule.name == "cosine") {
      type = "WarmupCosineLR";
      params["warmup_min_ratio"] = 0;
      params["cos_min_ratio"] = schedule.min_lr / run_.optim.lr;
    } else {
      if (!is_flat) type = "WarmupDecayLR";
      params["warmup_min_lr"] = 0;
      params["warmup_max_lr"] = run_.optim.lr;
    }
    if (!is_flat)
      params["total_num_steps"] =
          schedule.total_steps > 0 ? schedule.total_steps : run_.train.steps;
    if (schedule.name == "wsd") refuse("lr_schedule.name", "DeepSpeed has no wsd");
    if (schedule.name == "linear" && schedule.min_lr > 0)
      refuse("lr_schedule.min_lr", "DeepSpeed's linear schedule ends at 0");
    if (schedule.warmup_steps < 2)
      refuse("lr_schedule.warmup_steps",
             fmt::format("DeepSpeed warms up over 2 steps at least, is {}", schedule.warmup_steps));
    tree_["scheduler"] = {{"type", type}, {"params", std::move(params)}};
  }

  [[nodiscard]] int stage() const { return stage_of(run_.parallel.strategy).value_or(0); }

  void say_sharding() {
    constexpr std::array<std::string_view, 7> kSaid = {"ddp",   "no_shard",   "zero1",    "zero2",
                                                       "zero3", "full_shard", "zero3_hpz"};
    const ParallelConfig& parallel = run_.parallel;
    say({"parallel.strategy", "parallel.shard_size"});
    tree_["zero_optimization"]["stage"] = stage();
    if (std::ranges::find(kSaid, parallel.strategy) == kSaid.end())
      refuse("parallel.strategy", "DeepSpeed has no " + parallel.strategy);
    if (parallel.strategy == "zero3_hpz" && parallel.shard_size > 0)
      tree_["zero_optimization"]["zero_hpz_partition_size"] = parallel.shard_size;
    else if (parallel.strategy == "zero3_hpz")
      refuse("parallel.shard_size", "zero_hpz_partition_size is a number of ranks: give it");
    else if (parallel.shard_size > 0)
      refuse("parallel.shard_size", "DeepSpeed shards over all ranks");
  }

  void say_gathers() {
    const ParallelConfig& parallel = run_.parallel;
    SourceTree& zero = tree_["zero_optimization"];
    say({"parallel.bucket_bytes", "parallel.persist_params", "parallel.reuse_params",
         "parallel.prefetch_params", "parallel.max_live_params"});
    if (stage() == 0) zero["reduce_bucket_size"] = std::max<uint64_t>(1, parallel.bucket_bytes / 4);
    if (stage() == 0 && parallel.bucket_bytes % 4 != 0)
      refuse("parallel.bucket_bytes", "DeepSpeed counts elements, which have 4 bytes");
    if (stage() < 3) return;
    zero["stage3_param_persistence_threshold"] = parallel.persist_params;
    zero["stage3_max_reuse_distance"] = parallel.reuse_params;
    if (parallel.prefetch_params > 0)
      zero["stage3_prefetch_bucket_size"] = parallel.prefetch_params;
    if (parallel.max_live_params > 0) zero["stage3_max_live_parameters"] = parallel.max_live_params;
    if (run_.checkpoint.export_type == ExportType::kNone) return;
    say({"checkpoint.export"});
    zero["stage3_gather_16bit_weights_on_model_save"] = true;
    const std::string_view type = run_.train.precision.word();
    if (run_.checkpoint.export_type.word() != type)
      refuse("checkpoint.export", fmt::format("DeepSpeed gathers weights in {}", type));
  }

  void say_codecs() {
    const CommConfig& comm = run_.comm;
    SourceTree& zero = tree_["zero_optimization"];
    say({"comm.gather_codec"});
    if (comm.gather_codec == "int8")
      zero["zero_quantized_weights"] = true;
    else if (comm.gather_codec != "none")
      refuse("comm.gather_codec", "DeepSpeed quantises weights to int8");
    if (comm.codec != "int4" || stage() < 3) return;
    say({"comm.codec"});
    zero["zero_quantized_gradients"] = true;
  }

  void say_device(const char* setting, const char* block, Choice<OffloadTo> to) {
    say({setting});
    if (to == OffloadTo::kNone) return;
    SourceTree& device = tree_["zero_optimization"][block];
    device["device"] = to == OffloadTo::kMemory ? "cpu" : "nvme";
    if (to == OffloadTo::kFile) device["nvme_path"] = run_.offload.path;
    if (to == OffloadTo::kFile && stage() < 3)
      refuse(setting, "DeepSpeed offloads to files at stage 3 only");
  }

  void say_offload() {
    const OffloadConfig& offload = run_.offload;
    say_device("offload.optimizer", "offload_optimizer", offload.optimizer);
    say_device("offload.parameters", "offload_param", offload.parameters);
    say({"offload.path", "offload.ratio", "offload.step_tile", "offload.io"});
    if (offload.parameters != OffloadTo::kNone && stage() < 3)
      refuse("offload.parameters", "DeepSpeed offloads parameters at stage 3 only");
    if (offload.optimizer == OffloadTo::kNone) return;
    tree_["zero_optimization"]["sub_group_size"] = offload.step_tile;
    if (offload.ratio == 1) return;
    tree_["zero_optimization"]["offload_optimizer"]["ratio"] = offload.ratio;
    if (stage() < 3) refuse("offload.ratio", "below 1 for stage 3 only in DeepSpeed");
  }

  // What is not at its default, and was not said: DeepSpeed would have to do it, or the training
  // program.
  void judge_the_rest() {
    constexpr std::array<std::string_view, 5> kSections = {"optim", "lr_schedule", "parallel",
                                                           "offload", "fp16"};
    const std::set<std::string> numbers = {"train.matmul", "train.fp8_accumulation",
                                           "train.fp8_weights", "train.rounding"};
    for (const Setting& setting : settings()) {
      if (said_.contains(setting.name()) || is_default(setting)) continue;
      const bool is_theirs = std::ranges::find(kSections, setting.section) != kSections.end();
      if (is_theirs || numbers.contains(setting.name()))
        refused_.push_back(fmt::format("{}: DeepSpeed has nothing like {}", setting.name(),
                                       to_toml(setting.get(run_))));
      else
        left_out_.push_back(setting.name());
    }
  }

  // Of settings that the optimizer's name decides, that of the optimizer.
  [[nodiscard]] bool is_default(const Setting& setting) const {
    if (setting.is_default(run_)) return true;
    RunConfig preset;
    preset.optim.name = run_.optim.name;
    for (const OptimizerDefault& row : find_optimizer(preset.optim.name).defaults) {
      if (setting.section != "optim" || setting.key != row.key) continue;
      Value value = parse_text(setting, std::string(row.value));
      return accept(setting, value).empty() && value == setting.get(run_);
    }
    return false;
  }

  const RunConfig& run_;
  SourceTree tree_ = SourceTree::object();
  std::set<std::string> said_;
  std::vector<std::string> refused_;
  std::vector<std::string> left_out_;
};

}  // namespace

DeepSpeedExport export_deepspeed(const RunConfig& run) { return DeepSpeedWriter(run).write(); }

}  // namespace gxp
