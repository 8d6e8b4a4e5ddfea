// fsdp_config of accelerate's YAML. Source: accelerate 1.15.0, utils/dataclasses.py, utils/constants.py.
#include <algorithm>
#include <array>
#include <cmath>

#include "lib/tools/imports/programs.h"

namespace gxp::accelerate {
namespace {

// A key of fsdp_config, whose names have a prefix or not.
const SourceTree* find_fsdp(const Importing& in, const std::string& key) {
  const SourceTree* value = in.find("fsdp_config.fsdp_" + key);
  return value != nullptr ? value : in.find("fsdp_config." + key);
}

bool is_version_2(const Importing& in) {
  const SourceTree* version = find_fsdp(in, "version");
  return version != nullptr && to_number(*version) == 2;
}

void take_version(Importing& in, const KeyRule& rule) {
  const auto version = to_number(in.value());
  if (in.value().is_null() || version == 1.0 || version == 2.0)
    in.ignore(rule.note);
  else if (!is_for_other_type(in, "FSDP"))
    in.refuse("1 or 2 was expected");
}

bool take_strategy_name(Importing& in) {
  constexpr std::array<std::string_view, 5> kNames = {"full_shard", "shard_grad_op", "no_shard",
                                                      "hybrid_shard", "hybrid_shard_zero2"};
  const auto number = to_number(in.value());
  const bool is_index = number && *number >= 1 && *number <= 5 && std::floor(*number) == *number;
  const std::string name =
      is_index ? std::string(kNames[size_t(*number) - 1]) : to_lower_words(in.value());
  if (std::ranges::find(kNames, name) == kNames.end()) return false;
  in.map({{"parallel.strategy", name}});
  return true;
}

void take_sharding(Importing& in, const KeyRule&) {
  if (is_for_other_type(in, "FSDP")) return;
  if (is_version_2(in))
    in.ignore("version 2 has fsdp_reshard_after_forward");
  else if (!take_strategy_name(in))
    in.refuse(
        "one of FULL_SHARD, SHARD_GRAD_OP, NO_SHARD, HYBRID_SHARD, HYBRID_SHARD_ZERO2, or 1 to "
        "5, was expected");
}

void take_resharding(Importing& in, const KeyRule&) {
  if (is_for_other_type(in, "FSDP")) return;
  const auto size = to_number(in.value());
  const int ranks = in.request().ranks;
  const std::string word = in.word(in.name());
  if (!is_version_2(in)) {
    if (find_fsdp(in, "sharding_strategy") != nullptr)
      in.ignore("version 1 has fsdp_sharding_strategy");
    else if (!take_strategy_name(in))
      in.refuse("version 1 takes a strategy's name here");
  } else if (in.value() == true || word == "true") {
    in.map({{"parallel.strategy", "full_shard"}});
  } else if (in.value() == false || word == "false") {
    in.map({{"parallel.strategy", "shard_grad_op"}});
  } else if (!size || *size < 1 || std::floor(*size) != *size || *size > 1e6) {
    in.refuse("version 2 takes true, false or a number of ranks");
  } else if (ranks > 0 && ranks % int64_t(*size) != 0) {
    in.refuse("does not divide the ranks");
  } else {
    in.map({{"parallel.strategy", "zero3_hpz"}, {"parallel.shard_size", int64_t(*size)}},
           "an integer: gathered parameters are kept in shards of this size");
  }
}

void take_wrap(Importing& in, const KeyRule&) {
  if (is_for_other_type(in, "FSDP")) return;
  const std::string policy = to_lower_words(in.value());
  if (policy == "transformer_based_wrap")
    in.map({{"parallel.wrap", "block"}});
  else if (policy == "size_based_wrap" && find_fsdp(in, "min_num_params") == nullptr)
    in.refuse("without fsdp_min_num_params it wraps nothing, silently");
  else if (policy == "size_based_wrap")
    in.map({{"parallel.wrap", "size"}});
  else if (policy == "no_wrap" || is_false(in.value()))
    in.map({{"parallel.wrap", "none"}});
  else
    in.refuse("TRANSFORMER_BASED_WRAP, SIZE_BASED_WRAP or NO_WRAP was expected");
}

void take_wrap_size(Importing& in, const KeyRule& rule) {
  if (is_for_other_type(in, "FSDP")) return;
  const SourceTree* policy = find_fsdp(in, "auto_wrap_policy");
  if (policy == nullptr || to_lower_words(*policy) != "size_based_wrap")
    in.ignore("with SIZE_BASED_WRAP");
  else if (is_false(in.value()))
    in.refuse("0 with SIZE_BASED_WRAP wraps nothing, silently");
  else
    in.take_value(rule.setting);
}

void take_backward_prefetch(Importing& in, const KeyRule& rule) {
  if (is_for_other_type(in, "FSDP")) return;
  constexpr std::array<const char*, 3> kPolicies = {"no_prefetch", "backward_pre", "backward_post"};
  const auto number = to_number(in.value());  // accelerate counts from BACKWARD_PRE on
  const std::string policy =
      number == 1.0 || number == 2.0 ? kPolicies[size_t(*number)] : to_lower_words(in.value());
  const bool is_none = policy == "no_prefetch" || is_false(in.value());
  if (is_version_2(in))
    in.ignore("version 2 prefetches by itself");
  else if (is_none || policy == "backward_pre" || policy == "backward_post")
    in.map({{"parallel.backward_prefetch", is_none ? "none" : policy.substr(9)}}, rule.note);
  else
    in.refuse("BACKWARD_PRE, BACKWARD_POST or NO_PREFETCH was expected");
}

void take_forward_prefetch(Importing& in, const KeyRule& rule) {
  if (is_for_other_type(in, "FSDP")) return;
  if (!is_version_2(in))
    in.take_value(rule.setting);
  else if (is_true(in.value()))
    in.refuse("version 2 refuses it too");
  else
    in.ignore("version 2 prefetches by itself");
}

void take_state_dict(Importing& in, const KeyRule&) {
  if (is_for_other_type(in, "FSDP")) return;
  const std::string type = to_lower_words(in.value());
  if (type == "full_state_dict" || type == "sharded_state_dict")
    in.map({{"checkpoint.layout", type.substr(0, type.find('_'))}});
  else
    in.refuse("FULL_STATE_DICT or SHARDED_STATE_DICT was expected");
}

void take_fsdp_offload(Importing& in, const KeyRule&) {
  if (is_for_other_type(in, "FSDP")) return;
  if (in.is_switched_on())
    in.map({{"offload.optimizer", "memory"}, {"offload.parameters", "memory"}});
}

void take_recompute(Importing& in, const KeyRule&) {
  if (is_for_other_type(in, "FSDP")) return;
  if (in.is_switched_on()) in.map({{"train.recompute", "full"}});
}

void refuse_fsdp(Importing& in, const KeyRule& rule) {
  if (!is_for_other_type(in, "FSDP")) act::refuse_unless_off(in, rule);
}

#define GXP_FSDP(key, ...) \
  {"fsdp_config.fsdp_" key, __VA_ARGS__}, { "fsdp_config." key, __VA_ARGS__ }
constexpr KeyRule kFsdpRules[] = {
    GXP_FSDP("version", take_version, "", "1 or 2 decide how other keys are read"),
    GXP_FSDP("sharding_strategy", take_sharding),
    GXP_FSDP("reshard_after_forward", take_resharding),
    GXP_FSDP("auto_wrap_policy", take_wrap),
    GXP_FSDP("min_num_params", take_wrap_size, "parallel.wrap_min_params"),
    GXP_FSDP("backward_prefetch", take_backward_prefetch),
    GXP_FSDP("backward_prefetch_policy", take_backward_prefetch, "", "an older spelling"),
    GXP_FSDP("forward_prefetch", take_forward_prefetch, "parallel.forward_prefetch"),
    GXP_FSDP("state_dict_type", take_state_dict),
    GXP_FSDP("offload_params", take_fsdp_offload),
    GXP_FSDP("activation_checkpointing", take_recompute),
    GXP_FSDP("activation_checkpointing_offload", refuse_fsdp, "",
             "gxp keeps activations on the device"),
    GXP_FSDP("ignored_modules", refuse_fsdp, "", "gxp shards every tensor"),
    GXP_FSDP("transformer_layer_cls_to_wrap", act::ignore, "",
             "gxp's units are the blocks, whatever their class is called"),
    GXP_FSDP("use_orig_params", act::ignore, "", kAlways),
    GXP_FSDP("sync_module_states", act::ignore, "", kAlways),
    GXP_FSDP("cpu_ram_efficient_loading", act::ignore, "", kAlways),
    GXP_FSDP("limit_all_gathers", act::ignore, "", kAlways),
};
#undef GXP_FSDP

}  // namespace

std::span<const KeyRule> fsdp_rules() { return kFsdpRules; }

void add_fsdp_defaults(Importing& in) {
  const bool is_new = is_version_2(in);
  in.set_default("parallel.strategy", "full_shard");
  in.set_default("parallel.wrap", "none");
  in.set_default("checkpoint.layout", is_new ? "sharded" : "full");
  if (is_new) return;
  in.set_default("parallel.backward_prefetch", "none");
  in.set_default("parallel.forward_prefetch", false);
}

}  // namespace gxp::accelerate
