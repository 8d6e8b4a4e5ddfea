#include "lib/arch/adapter_config.h"

#include <algorithm>
#include <array>

#include "lib/base/error.h"
#include "lib/base/json/json.h"

namespace gxp {
namespace {

// What changes an adapter's computation or initialisation, and of which gxp computes only what the
// key says where it is absent, null, empty or false; or this word.
struct OtherKind {
  const char* key;
  std::string_view word = {};
};
constexpr std::array kOtherKinds = {
    OtherKind{"use_dora"},
    OtherKind{"lora_bias"},
    OtherKind{"bias", "none"},
    OtherKind{"rank_pattern"},
    OtherKind{"alpha_pattern"},
    OtherKind{"layers_to_transform"},
    OtherKind{"layers_pattern"},
    OtherKind{"layer_replication"},
    OtherKind{"modules_to_save"},
    OtherKind{"exclude_modules"},
    OtherKind{"target_parameters"},
    OtherKind{"trainable_token_indices"},
    OtherKind{"alora_invocation_tokens"},
    OtherKind{"use_qalora"},
    OtherKind{"use_bdlora"},
    OtherKind{"arrow_config"},
    OtherKind{"kasa_config"},
    OtherKind{"monteclora_config"},
    OtherKind{"velora_config"},
};

// Values of init_lora_weights that leave the adapted matrices as they are. PiSSA, OLoRA, CorDA,
// LoRA-GA and LoftQ take a part out of them, so that the adapter is not one of the base's.
constexpr std::array<std::string_view, 4> kPlainInits = {"gaussian", "eva", "orthogonal", "mica"};

bool says_nothing(const Json& value) {
  return value.is_null() || value == false ||
         ((value.is_object() || value.is_array()) && value.empty());
}

void check_kind(const Json& config, const std::string& path) {
  const auto refuse = [&](const std::string& key) {
    fail(ErrorKind::kConfig, "read {}: {} is {}, which gxp's adapters do not have", path, key,
         config[key].dump());
  };
  if (config.value("peft_type", Json()) != "LORA") {
    const Json type = config.value("peft_type", Json());
    fail(ErrorKind::kConfig, "read {}: peft_type is {}; only LORA is supported", path, type.dump());
  }
  for (const OtherKind& kind : kOtherKinds) {
    const Json value = config.value(kind.key, Json());
    if (!says_nothing(value) && value != kind.word) refuse(kind.key);
  }
}

void check_init(const Json& config, const std::string& path) {
  const Json init = config.value("init_lora_weights", Json());
  const bool is_plain = init.is_null() || init.is_boolean() ||
                        std::ranges::find(kPlainInits, init) != kPlainInits.end();
  if (is_plain) return;
  fail(ErrorKind::kConfig,
       "read {}: init_lora_weights is {}, which changes the base model's matrices as well; PEFT's "
       "save_pretrained() with path_initial_model_for_weight_conversion makes an adapter of the "
       "unchanged model",
       path, init.dump());
}

double number_of(const Json& config, const char* key, double absent, const std::string& path) {
  const Json value = config.value(key, Json());
  if (value.is_null()) return absent;
  if (!value.is_number() || !(value.get<double>() >= 0))
    fail(ErrorKind::kCorrupt, "read {}: {} is {}, not a number from 0 on", path, key, value.dump());
  return value.get<double>();
}

std::vector<std::string> targets_of(const Json& config, const std::string& path) {
  const Json value = config.value("target_modules", Json());
  if (value == "all-linear") return {"all-linear"};
  if (!value.is_array() || value.empty())
    fail(ErrorKind::kConfig,
         "read {}: target_modules is {}; gxp takes a list of names, not a pattern or a default",
         path, value.dump());
  std::vector<std::string> targets;
  for (const Json& target : value) targets.push_back(to_text(target, path + ": target_modules"));
  return targets;
}

}  // namespace

AdapterConfig read_adapter_config(std::string_view text, const std::string& path) {
  const Json config = parse_python_json(text, path);
  to_object(config, "read " + path);
  check_kind(config, path);
  check_init(config, path);
  const uint64_t rank = to_unsigned(config.value("r", Json(8)), path + ": r");
  if (rank < 1 || rank > (1 << 16))
    fail(ErrorKind::kConfig, "read {}: r is {}; must be from 1 to {}", path, rank, 1 << 16);
  AdapterConfig adapter;
  adapter.lora = {.rank = int(rank),
                  .alpha = number_of(config, "lora_alpha", 8, path),
                  .targets = targets_of(config, path),
                  .dropout = number_of(config, "lora_dropout", 0, path),
                  .rslora = config.value("use_rslora", Json()) == true};
  adapter.transposed = config.value("fan_in_fan_out", Json()) == true;
  const Json base = config.value("base_model_name_or_path", Json());
  if (base.is_string()) adapter.base = base.get<std::string>();
  return adapter;
}

std::string make_adapter_config(const AdapterConfig& config) {
  const LoraConfig& lora = config.lora;
  const Json targets = lora.targets == std::vector<std::string>{"all-linear"} ? Json("all-linear")
                                                                              : Json(lora.targets);
  const Json json = {{"peft_type", "LORA"},
                     {"task_type", "CAUSAL_LM"},
                     {"base_model_name_or_path", config.base.empty() ? Json() : Json(config.base)},
                     {"r", lora.rank},
                     {"lora_alpha", lora.alpha},
                     {"lora_dropout", lora.dropout},
                     {"target_modules", targets},
                     {"use_rslora", lora.rslora},
                     {"fan_in_fan_out", config.transposed},
                     {"bias", "none"},
                     {"modules_to_save", nullptr},
                     {"inference_mode", true}};
  return write_python_json(json) + "\n";
}

}  // namespace gxp
