// DeepSpeed's zero_optimization. Source: DeepSpeed 0.19.8, runtime/zero/config.py and
// runtime/zero/offload_config.py.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "lib/tools/imports/programs.h"

namespace gxp::zero_keys {
namespace {

constexpr std::string_view kWidthUnknown =
    "left to gxp's default, since the model's hidden_size is not known";
constexpr std::string_view kBuffers = "no meaning in gxp: gxp's pipeline has its own buffers";

int stage_in(const Importing& in) { return int(in.number("zero_optimization.stage").value_or(0)); }

// A size of shard groups; 0: off.
int64_t group_in(const Importing& in, std::string_view key) {
  const double size = in.number(key).value_or(0);
  return size >= 1 && size < 1e6 && std::floor(size) == size ? int64_t(size) : 0;
}
constexpr std::string_view kHpz = "zero_optimization.zero_hpz_partition_size";
constexpr std::string_view kMics = "zero_optimization.mics_shard_size";

std::vector<ImportedSetting> hybrid(std::string_view strategy, int64_t size) {
  return {{"parallel.strategy", std::string(strategy)}, {"parallel.shard_size", size}};
}

void take_stage(Importing& in, const KeyRule&) {
  constexpr std::array<const char*, 4> kStrategies = {"ddp", "zero1", "zero2", "zero3"};
  const auto stage = to_number(in.value());
  if (!stage || (*stage != 0 && *stage != 1 && *stage != 2 && *stage != 3)) {
    in.refuse("stages are 0 to 3");
  } else if (*stage == 3 && group_in(in, kHpz) > 1) {
    in.map(hybrid("zero3_hpz", group_in(in, kHpz)), "with zero_hpz_partition_size");
  } else if (*stage == 3 && group_in(in, kMics) > 0) {
    in.map(hybrid("hybrid_shard", group_in(in, kMics)), "with mics_shard_size");
  } else {
    in.map({{"parallel.strategy", std::string(kStrategies[size_t(*stage)])}});
  }
}

void take_group(Importing& in, std::string_view key, std::string_view strategy, int64_t off,
                std::string_view note) {
  const int64_t size = group_in(in, key);
  const int ranks = in.request().ranks;
  const double given = to_number(in.value()).value_or(2);
  if (size <= off && given <= 1)
    in.ignore("off");
  else if (size <= off)
    in.refuse("a number of ranks was expected");
  else if (stage_in(in) != 3)
    in.refuse("for stage 3");
  else if (ranks > 0 && ranks % size != 0)
    in.refuse("does not divide the ranks");
  else
    in.map(hybrid(strategy, size), note);
}

void take_hpz(Importing& in, const KeyRule&) { take_group(in, kHpz, "zero3_hpz", 1, ""); }

void take_mics(Importing& in, const KeyRule&) {
  if (group_in(in, kMics) > 0 && group_in(in, kHpz) > 1)
    in.refuse("excludes zero_hpz_partition_size");
  else
    take_group(in, kMics, "hybrid_shard", 0,
               "DeepSpeed since 0.19 refuses it; older releases have it");
}

// Elements of a bucket. With the gradients of ddp they are float32.
void take_bucket(Importing& in, const KeyRule&) {
  const auto elements = to_number(in.value());
  if (stage_in(in) > 0)
    in.ignore("gxp reduces sharded gradients by FSDP unit, so the size has no meaning there");
  else if (in.is_auto() && in.value().is_null())
    in.change({}, kWidthUnknown);
  else if (!elements || *elements < 1 || *elements > 1e15)
    in.refuse("a number of elements was expected");
  else
    in.change({{"parallel.bucket_bytes", 4 * int64_t(*elements)}},
              "elements become bytes of float32 gradients");
}

void take_overlap(Importing& in, const KeyRule&) {
  if (is_false(in.value()))
    in.change({}, "gxp overlaps anyway: same numbers, more memory for buffers");
  else
    in.ignore(kAlways);
}

bool is_offloaded(const Importing& in, const std::string& what) {
  const std::string device = in.word("zero_optimization.offload_" + what + ".device");
  const bool is_old = in.is_on(what == "param" ? "zero_optimization.cpu_offload_param"
                                               : "zero_optimization.cpu_offload");
  return (!device.empty() && device != "none") || is_old;
}

// "cpu", "nvme" or "none" for offload.optimizer or offload.parameters.
void take_device(Importing& in, const KeyRule& rule) {
  const std::string device = in.word(in.name());
  const std::string setting(rule.setting);
  const std::string block = in.name().substr(0, in.name().rfind('.'));
  if (device == "none") {
    in.map({{setting, "none"}});
  } else if (device == "cpu") {
    in.map({{setting, "memory"}}, rule.note);
  } else if (device == "nvme" && stage_in(in) != 3) {
    in.refuse("nvme is for stage 3 in DeepSpeed (gxp could: offload.optimizer=file)");
  } else if (const SourceTree* path = in.find(block + ".nvme_path");
             device == "nvme" && path != nullptr && path->is_string()) {
    in.map({{setting, "file"}, {"offload.path", path->get<std::string>()}});
  } else {
    in.refuse(device == "nvme" ? "nvme needs nvme_path" : "cpu, nvme or none was expected");
  }
}

void take_parameter_device(Importing& in, const KeyRule& rule) {
  if (in.word(in.name()) == "none" || is_false(in.value()))
    in.ignore("off");
  else if (stage_in(in) != 3)
    in.refuse("parameters are offloaded at stage 3 only");
  else if (!is_offloaded(in, "optimizer"))
    in.refuse(
        "gxp offloads parameters only together with the optimizer: set offload_optimizer too");
  else if (in.value().is_string())
    take_device(in, rule);
  else
    in.map({{std::string(rule.setting), "memory"}}, kOldSpelling);
}

void take_old_offload(Importing& in, const KeyRule& rule) {
  if (in.is_switched_on()) in.map({{std::string(rule.setting), "memory"}}, kOldSpelling);
}

void take_ratio(Importing& in, const KeyRule& rule) {
  const auto ratio = to_number(in.value());
  if (ratio && *ratio == 1)
    in.ignore("1: all of it, as gxp");
  else if (!is_offloaded(in, "optimizer"))
    in.ignore("with a device");
  else if (stage_in(in) != 3)
    in.refuse("below 1 for stage 3 only in DeepSpeed");
  else
    in.take_value(rule.setting);
}

void take_tile(Importing& in, const KeyRule&) {
  const auto elements = to_number(in.value());
  if (!is_offloaded(in, "optimizer"))
    in.ignore("gxp tiles only an offloaded update");
  else if (!elements || *elements < 0)
    in.refuse("a number of elements was expected");
  else
    in.change({{"offload.step_tile", int64_t(std::clamp(*elements, 1.0, double(1 << 30)))}},
              "elements of a tile, at most 2^30, rounded up to 2048");
}

// What acts at stage 3 only: numbers of parameters.
void take_parameters(Importing& in, const KeyRule& rule) {
  const auto count = to_number(in.value());
  if (stage_in(in) != 3)
    in.ignore("for stage 3");
  else if (in.is_auto() && in.value().is_null())
    in.change({}, kWidthUnknown);
  else if (count && *count < 0)
    in.refuse("a number of parameters was expected");
  else if (count == 0.0 && rule.setting == "parallel.prefetch_params")
    in.change({{"parallel.forward_prefetch", false}, {"parallel.backward_prefetch", "none"}},
              "0: nothing is gathered ahead");
  else if (count == 0.0 && rule.setting == "parallel.max_live_params")
    in.change({{"parallel.max_live_params", int64_t{1}}},
              "0 means no limit in gxp; 1 keeps nothing");
  else
    in.take_value(rule.setting, rule.note, !rule.note.empty());
}

void take_gathered_export(Importing& in, const KeyRule& rule) {
  if (in.is_switched_on())
    in.map({{"checkpoint.export", in.is_on("fp16.enabled")        ? "fp16"
                                  : deepspeed::is_brain_float(in) ? "bf16"
                                                                  : "fp32"}},
           rule.note);
}

// The codec in which ZeRO++ sends.
void take_quantized_weights(Importing& in, const KeyRule&) {
  if (!in.is_switched_on()) return;
  if (stage_in(in) != 3)
    in.ignore("for stage 3");
  else
    in.change({{"comm.gather_codec", "int8"}},
              "gxp quantises between hosts only, in blocks of 128 weights");
}

void take_quantized_gradients(Importing& in, const KeyRule&) {
  if (!in.is_switched_on()) return;
  if (stage_in(in) != 3)
    in.ignore("for stage 3");
  else if (in.is_on("fp16.enabled"))
    in.refuse(
        "gxp compresses gradients with error feedback, which fp16's loss scale does not allow");
  else
    in.change({{"comm.codec", "int4"}},
              "gxp quantises between hosts only, in blocks of 128, and adds error feedback");
}

#define GXP_ZERO "zero_optimization."
constexpr std::string_view kExactWeights = "gxp stores frozen weights unquantised";
constexpr std::string_view kOtherCodec =
    "gxp compresses gradients in other formats, with error feedback: comm.codec";
constexpr KeyRule kRules[] = {
    {GXP_ZERO "stage", take_stage},
    {GXP_ZERO "zero_hpz_partition_size", take_hpz},
    {GXP_ZERO "mics_shard_size", take_mics},
    {GXP_ZERO "mics_hierarchical_params_gather", act::ignore, "", "gxp chooses the algorithm"},
    {GXP_ZERO "reduce_bucket_size", take_bucket},
    {GXP_ZERO "allgather_bucket_size", act::ignore, "",
     "read by no code of newer DeepSpeed; gxp gathers by FSDP unit"},
    {GXP_ZERO "allgather_size", act::ignore, "", "an older spelling of allgather_bucket_size"},
    {GXP_ZERO "overlap_comm", take_overlap},
    {GXP_ZERO "contiguous_gradients", act::ignore, "", kAlways},
    {GXP_ZERO "reduce_scatter", act::ignore, "", kAlways},
    {GXP_ZERO "allgather_partitions", act::ignore, "", kAlways},
    {GXP_ZERO "load_from_fp32_weights", act::ignore, "", kAlways},
    {GXP_ZERO "elastic_checkpoint", act::ignore, "",
     "gxp always does so: checkpoints resume on any number of ranks"},
    {GXP_ZERO "compute_grad_norm", act::ignore, "", kAlways},
    {GXP_ZERO "round_robin_gradients", act::ignore, "", kMeaningless},
    {GXP_ZERO "use_multi_rank_bucket_allreduce", act::ignore, "", kMeaningless},
    {GXP_ZERO "ignore_unused_parameters", act::ignore, "", kMeaningless},
    {GXP_ZERO "memory_efficient_linear", act::ignore, "", kMeaningless},
    {GXP_ZERO "parameter_alignment", act::ignore, "", kMeaningless},
    {GXP_ZERO "pipeline_loading_checkpoint", act::ignore, "", kMeaningless},
    {GXP_ZERO "override_module_apply", act::ignore, "", kMeaningless},
    {GXP_ZERO "enable_sanity_checks", act::ignore, "", kMeaningless},
    {GXP_ZERO "save_muon_momentum_buffer_in_memory", act::ignore, "", kMeaningless},
    {GXP_ZERO "stage3_use_all_reduce_for_fetch_params", act::ignore, "", kMeaningless},
    {GXP_ZERO "stage3_allgather_sequential", act::ignore, "", kMeaningless},
    {GXP_ZERO "log_trace_cache_warnings", act::ignore, "", "logging of another program"},
    {GXP_ZERO "legacy_stage1", act::refuse_unless_off, "", "DeepSpeed refuses it too"},
    {GXP_ZERO "leaf_module.*", act::ignore, "",
     "no experts in gxp: FSDP units are set by parallel.wrap"},
    {GXP_ZERO "leaf_module", act::ignore, "", "empty"},
    {GXP_ZERO "zenflow.*", act::refuse, "", "no ZenFlow"},
    {GXP_ZERO "stage3_prefetch_bucket_size", take_parameters, "parallel.prefetch_params"},
    {GXP_ZERO "prefetch_bucket_size", take_parameters, "parallel.prefetch_params"},
    {GXP_ZERO "stage3_max_live_parameters", take_parameters, "parallel.max_live_params"},
    {GXP_ZERO "max_live_parameters", take_parameters, "parallel.max_live_params"},
    {GXP_ZERO "stage3_max_reuse_distance", take_parameters, "parallel.reuse_params"},
    {GXP_ZERO "max_reuse_distance", take_parameters, "parallel.reuse_params"},
    {GXP_ZERO "stage3_param_persistence_threshold", take_parameters, "parallel.persist_params",
     "gxp counts an FSDP unit, DeepSpeed a tensor"},
    {GXP_ZERO "param_persistence_threshold", take_parameters, "parallel.persist_params",
     "gxp counts an FSDP unit, DeepSpeed a tensor"},
    {GXP_ZERO "stage3_model_persistence_threshold", act::ignore, "",
     "gxp has no total for what stays gathered"},
    {GXP_ZERO "model_persistence_threshold", act::ignore, "",
     "gxp has no total for what stays gathered"},
    {GXP_ZERO "stage3_module_granularity_threshold", act::ignore, "",
     "FSDP units are set by parallel.wrap"},
    {GXP_ZERO "module_granularity_threshold", act::ignore, "",
     "FSDP units are set by parallel.wrap"},
    {GXP_ZERO "stage3_gather_16bit_weights_on_model_save", take_gathered_export},
    {GXP_ZERO "gather_16bit_weights_on_model_save", take_gathered_export},
    {GXP_ZERO "stage3_gather_fp16_weights_on_model_save", take_gathered_export, "", kOldSpelling},
    {GXP_ZERO "sub_group_size", take_tile},
    {GXP_ZERO "offload_optimizer.device", take_device, "offload.optimizer"},
    {GXP_ZERO "offload_optimizer.nvme_path", act::ignore, "", "with device nvme: offload.path"},
    {GXP_ZERO "offload_optimizer.ratio", take_ratio, "offload.ratio"},
    {GXP_ZERO "offload_optimizer.super_offload", act::refuse_unless_off, "", "no SuperOffload"},
    {GXP_ZERO "offload_optimizer.buffer_count", act::ignore, "", kBuffers},
    {GXP_ZERO "offload_optimizer.pin_memory", act::ignore, "", kBuffers},
    {GXP_ZERO "offload_optimizer.pipeline_read", act::ignore, "", kBuffers},
    {GXP_ZERO "offload_optimizer.pipeline_write", act::ignore, "", kBuffers},
    {GXP_ZERO "offload_optimizer.pipeline", act::ignore, "", kBuffers},
    {GXP_ZERO "offload_optimizer.fast_init", act::ignore, "", kBuffers},
    {GXP_ZERO "offload_optimizer.cpuadam_cores_perc", act::ignore, "", kBuffers},
    {GXP_ZERO "offload_optimizer", act::refuse_unless_off, "", "a block was expected"},
    {GXP_ZERO "offload_param.device", take_parameter_device, "offload.parameters"},
    {GXP_ZERO "offload_param.nvme_path", act::ignore, "", "with device nvme: offload.path"},
    {GXP_ZERO "offload_param.buffer_count", act::ignore, "", kBuffers},
    {GXP_ZERO "offload_param.buffer_size", act::ignore, "", kBuffers},
    {GXP_ZERO "offload_param.max_in_cpu", act::ignore, "", kBuffers},
    {GXP_ZERO "offload_param.pin_memory", act::ignore, "", kBuffers},
    {GXP_ZERO "offload_param", act::refuse_unless_off, "", "a block was expected"},
    {GXP_ZERO "cpu_offload", take_old_offload, "offload.optimizer"},
    {GXP_ZERO "cpu_offload_param", take_parameter_device, "offload.parameters"},
    {GXP_ZERO "cpu_offload_params", take_parameter_device, "offload.parameters"},
    {GXP_ZERO "cpu_offload_use_pin_memory", act::ignore, "", kMeaningless},
    {GXP_ZERO "zero_quantized_weights", take_quantized_weights},
    {GXP_ZERO "zero_quantized_gradients", take_quantized_gradients},
    {GXP_ZERO "zero_quantized_nontrainable_weights", act::refuse_unless_off, "", kExactWeights},
    {GXP_ZERO "zeropp_loco_param.*", act::refuse, "", kOtherCodec},
    {GXP_ZERO "zeropp_loco_param", act::refuse_unless_off, "", kOtherCodec},
    {GXP_ZERO "*", act::refuse_unknown, "",
     "unknown key inside zero_optimization: DeepSpeed refuses it"},
};
#undef GXP_ZERO

}  // namespace

std::span<const KeyRule> rules() { return kRules; }

}  // namespace gxp::zero_keys
