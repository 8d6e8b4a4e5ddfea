// Rotary positions. transformers 5 has one object, rope_parameters, which Gemma 3 has for each kind
// of layers; transformers 4 has rope_scaling, or null, and the rest beside it.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <span>

#include "lib/arch/config_json/config_json.h"
#include "lib/arch/config_json/config_keys.h"
#include "lib/arch/rope_scaling.h"

namespace gxp {
namespace {

constexpr const char* kOriginal = "original_max_position_embeddings";

// What transformers 4 calls the base of the angles and the share of the channels that turn.
struct TopKeys {
  const char* theta = "rope_theta";
  const char* share = "partial_rotary_factor";
};
TopKeys top_keys(const Family& family) {
  if (family.name == "gpt_neox") return {"rotary_emb_base", "rotary_pct"};
  return {};
}

constexpr std::array<std::string_view, 4> kOfAll = {"rope_type", "type", "rope_theta",
                                                    "partial_rotary_factor"};
constexpr std::array<std::string_view, 1> kOfLinear = {"factor"};
constexpr std::array<std::string_view, 4> kOfLlama3 = {"factor", "low_freq_factor",
                                                       "high_freq_factor", kOriginal};
constexpr std::array<std::string_view, 9> kOfYarn = {
    "factor", kOriginal,        "attention_factor", "beta_fast", "beta_slow",
    "mscale", "mscale_all_dim", "truncate",         "finetuned"};  // the last without effect

struct RopeKind {
  std::string_view name;
  RopeScaling scaling;
  std::span<const std::string_view> keys;
};
constexpr std::array kKinds = {RopeKind{"default", RopeScaling::kNone, {}},
                               RopeKind{"linear", RopeScaling::kLinear, kOfLinear},
                               RopeKind{"llama3", RopeScaling::kLlama3, kOfLlama3},
                               RopeKind{"yarn", RopeScaling::kYarn, kOfYarn}};

// The value beside the objects; null means what no key means.
Json top_value(const ModelInJson& in, const char* key) {
  const Json value = in.config[key];
  return value.is_null() ? class_default(in.family.name, key) : value;
}

bool has(std::span<const std::string_view> keys, std::string_view key) {
  return std::ranges::find(keys, key) != keys.end();
}

void set_default(Json& object, const char* key, const Json& value) {
  if (value_of(object, key).is_null()) object[key] = value;
}

// One object of rotary positions, and what it is called in the file.
struct RopeObject {
  Json json;
  std::string where;
  [[nodiscard]] Json operator[](std::string_view key) const { return value_of(json, key); }
  [[nodiscard]] std::string wrong(std::string_view key, std::string_view wanted) const {
    const Json value = (*this)[key];
    return fmt::format("{}.{} is {}, {}", where, key, value.is_null() ? "absent" : to_words(value),
                       wanted);
  }
};

std::string kind_problem(const std::string& type, const Family& family) {
  if (type == "dynamic" || type == "longrope" || type == "su")
    return fmt::format(
        "rope_type is {}: its frequencies depend on the longest row of a batch, and those of gxp "
        "do not; it computes default, linear, llama3 and yarn",
        type);
  if (std::ranges::find(kKinds, type, &RopeKind::name) == kKinds.end())
    return fmt::format("rope_type is {}; gxp computes default, linear, llama3 and yarn", type);
  if (family.name == "phi3" && type != "default")
    return fmt::format("rope_type is {}, which {} does not compute", type, family.architecture);
  return "";
}

std::string unknown_key_problem(const RopeObject& rope, const RopeKind& kind) {
  for (const auto& [key, value] : rope.json.items()) {
    if (value.is_null() || has(kOfAll, key) || has(kind.keys, key)) continue;
    return fmt::format("{}.{} is {}, which gxp does not know for rope_type {}", rope.where, key,
                       to_words(value), kind.name);
  }
  return "";
}

std::string read_share(const RopeObject& rope, bool is_scaled, ModelInJson& in) {
  const Json share = rope["partial_rotary_factor"];
  if (in.family.has("rope_partial")) {
    if (!is_positive(share) || share > 1)
      return rope.wrong("partial_rotary_factor", "not a number above 0 and up to 1");
    in.model.rope_partial = share.get<double>();
  } else if (is_scaled && !share.is_null() && share != 1.0) {  // plain ones do not read it
    return rope.wrong("partial_rotary_factor",
                      fmt::format("which {} cannot compute", in.family.architecture));
  }
  const int channels = turning_channels(in.model);
  if (channels > 0 && channels % 2 == 0) return "";
  return fmt::format("rotary positions turn {} of {} channels of a head, not an even number",
                     channels, in.model.channels_per_head());
}

// Of the object, which must say it.
std::string read_number_of(const RopeObject& rope, const char* key, double& number) {
  if (!is_positive(rope[key])) return rope.wrong(key, "not a positive number");
  number = rope[key].get<double>();
  return "";
}

std::string read_original_context(const RopeObject& rope, ModelInJson& in) {
  Json context = value_of(in.told, kOriginal);  // the outer one wins
  if (context.is_null() || in.family.kind.local_rotary) context = rope[kOriginal];
  if (context.is_null()) context = in.model.context;
  if (!is_size(context))
    return fmt::format("{} is {}, not a positive number", kOriginal, to_words(context));
  in.model.rope_original_context = context.get<int>();
  return "";
}

double log_factor(double factor, double scale) {
  return factor > 1 ? 0.1 * scale * std::log(factor) + 1 : 1;
}

std::string read_attention_factor(const RopeObject& rope, ModelInJson& in) {
  for (const char* key : {"attention_factor", "mscale", "mscale_all_dim"})
    if (const Json value = rope[key]; !value.is_null() && !value.is_number())
      return rope.wrong(key, "not a number");
  const double factor = in.model.rope_factor;
  const auto number = [&](const char* key) {
    return rope[key].is_null() ? 0.0 : rope[key].get<double>();
  };
  double& wanted = in.model.rope_attention_factor;
  if (!rope["attention_factor"].is_null())
    wanted = number("attention_factor");
  else if (number("mscale") != 0 && number("mscale_all_dim") != 0)
    wanted = log_factor(factor, number("mscale")) / log_factor(factor, number("mscale_all_dim"));
  else
    wanted = log_factor(factor, 1);
  if (wanted > 0 && std::isfinite(wanted)) return "";
  return fmt::format("{} gives an attention factor of {}, not a positive number", rope.where,
                     wanted);
}

std::string read_yarn(const RopeObject& rope, ModelInJson& in) {
  ModelConfig& model = in.model;
  if (auto problem = read_original_context(rope, in); !problem.empty()) return problem;
  if (rope.json.contains("factor") && rope["factor"].is_null())
    model.rope_factor = double(model.context) / model.rope_original_context;
  else if (auto problem = read_number_of(rope, "factor", model.rope_factor); !problem.empty())
    return problem;
  for (const auto& [key, number] : {std::pair{"beta_fast", &model.rope_beta_fast},
                                    std::pair{"beta_slow", &model.rope_beta_slow}})
    if (!rope[key].is_null())
      if (auto problem = read_number_of(rope, key, *number); !problem.empty()) return problem;
  const Json truncate = rope["truncate"];
  if (!truncate.is_null() && !truncate.is_boolean())
    return rope.wrong("truncate", "neither true nor false");
  model.rope_truncate = truncate != false;
  return read_attention_factor(rope, in);
}

std::string read_scaling(const RopeObject& rope, ModelInJson& in) {
  ModelConfig& model = in.model;
  if (model.rope_scaling == RopeScaling::kNone) return "";
  if (model.rope_scaling == RopeScaling::kYarn) return read_yarn(rope, in);
  if (auto problem = read_number_of(rope, "factor", model.rope_factor); !problem.empty())
    return problem;
  if (model.rope_scaling == RopeScaling::kLinear) return "";
  for (const auto& [key, number] : {std::pair{"low_freq_factor", &model.rope_low_freq_factor},
                                    std::pair{"high_freq_factor", &model.rope_high_freq_factor}})
    if (auto problem = read_number_of(rope, key, *number); !problem.empty()) return problem;
  return read_original_context(rope, in);
}

// Of the layers that see all positions.
std::string read_one(const RopeObject& rope, ModelInJson& in) {
  Json type = rope["rope_type"];
  if (type.is_null()) type = rope["type"];
  if (type.is_null()) type = "default";
  const std::string name = to_words(type);
  if (auto problem = kind_problem(name, in.family); !problem.empty()) return problem;
  const RopeKind& kind = *std::ranges::find(kKinds, name, &RopeKind::name);
  if (auto problem = unknown_key_problem(rope, kind); !problem.empty()) return problem;
  if (auto problem = read_number_of(rope, "rope_theta", in.model.rope_theta); !problem.empty())
    return problem;
  in.model.rope_scaling = kind.scaling;
  const bool is_scaled = kind.scaling != RopeScaling::kNone;
  if (auto problem = read_share(rope, is_scaled, in); !problem.empty()) return problem;
  return read_scaling(rope, in);
}

// rope_scaling, where it says anything, replaces rope_parameters.
std::string read_single(const Json& scaling, Json parameters, ModelInJson& in) {
  const TopKeys top = top_keys(in.family);
  RopeObject rope{std::move(parameters), "rope_parameters"};
  if (!scaling.empty()) {
    // transformers 4 reads another one than 5.
    for (const Json& outer : {value_of(in.told, top.theta), rope["rope_theta"]})
      if (const Json inner = value_of(scaling, "rope_theta");
          !inner.is_null() && !outer.is_null() && inner != outer)
        return fmt::format("rope_theta is {} inside rope_scaling and {} outside of it",
                           to_words(inner), to_words(outer));
    // Readers differ on what such settings mean.
    if (value_of(scaling, "rope_type").is_null() && value_of(scaling, "type").is_null())
      return "rope_scaling has no rope_type";
    rope = {scaling, "rope_scaling"};
  }
  set_default(rope.json, "rope_theta", top_value(in, top.theta));
  set_default(rope.json, "partial_rotary_factor", top_value(in, top.share));
  return read_one(rope, in);
}

// Gemma 3: of layers without a window, which rope_scaling is for, and of those with one.
std::string read_two(const Json& scaling, const Json& parameters, ModelInJson& in) {
  for (const auto& [key, value] : parameters.items()) {
    const bool is_known = key == "full_attention" || key == "sliding_attention";
    if (!value.is_null() && (!is_known || !value.is_object()))
      return fmt::format(
          "rope_parameters.{} is {}; {} reads the objects full_attention and "
          "sliding_attention",
          key, to_words(value), in.family.architecture);
  }
  const auto object_of = [&](const char* kind) {
    const Json object = value_of(parameters, kind);
    return RopeObject{object.is_null() ? Json::object() : object,
                      fmt::format("rope_parameters.{}", kind)};
  };
  RopeObject full = object_of("full_attention");
  RopeObject local = object_of("sliding_attention");
  full.json.update(scaling);
  if (!scaling.empty()) full.where = "rope_scaling";
  set_default(full.json, "rope_theta", top_value(in, "rope_theta"));
  set_default(local.json, "rope_theta", top_value(in, "rope_local_base_freq"));
  if (auto problem = read_one(full, in); !problem.empty()) return problem;
  set_default(local.json, "rope_type", value_of(local.json, "type"));
  set_default(local.json, "rope_type", "default");
  if (local["rope_type"] != "default")
    return local.wrong("rope_type", "and gxp does not scale layers with a window");
  if (auto problem = unknown_key_problem(local, kKinds.front()); !problem.empty()) return problem;
  return read_number_of(local, "rope_theta", in.model.rope_local_theta);
}

// An object, empty for null.
std::string take_object(const ModelInJson& in, const char* key, Json& object) {
  object = in.config[key];
  if (object.is_null()) object = Json::object();
  return object.is_object() ? "" : fmt::format("{} is {}, no object", key, to_words(object));
}

Json scaling_json(const ModelConfig& model) {
  const auto kind = std::ranges::find(kKinds, RopeScaling(model.rope_scaling), &RopeKind::scaling);
  Json rope = {{"rope_type", kind->name}};
  if (model.rope_scaling == RopeScaling::kNone) return rope;
  rope["factor"] = model.rope_factor;
  if (model.rope_scaling == RopeScaling::kLinear) return rope;
  rope[kOriginal] = model.rope_original_context > 0 ? model.rope_original_context : model.context;
  if (model.rope_scaling == RopeScaling::kLlama3) {
    rope["low_freq_factor"] = model.rope_low_freq_factor;
    rope["high_freq_factor"] = model.rope_high_freq_factor;
    return rope;
  }
  rope["beta_fast"] = model.rope_beta_fast;
  rope["beta_slow"] = model.rope_beta_slow;
  rope["truncate"] = model.rope_truncate;
  rope["attention_factor"] = make_rotary(model).factor;
  return rope;
}

}  // namespace

std::string read_rope(ModelInJson& in) {
  if (in.family.kind.position_table) return "";
  Json scaling, parameters;
  if (auto problem = take_object(in, "rope_scaling", scaling); !problem.empty()) return problem;
  if (auto problem = take_object(in, "rope_parameters", parameters); !problem.empty())
    return problem;
  return in.family.kind.local_rotary ? read_two(scaling, parameters, in)
                                     : read_single(scaling, std::move(parameters), in);
}

void write_rope(const ModelConfig& model, Json& config) {
  const Family& family = find_family(model.family);
  if (family.kind.position_table) return;
  const bool is_scaled = model.rope_scaling != RopeScaling::kNone;
  if (is_scaled && family.name == "phi3")
    fail_to_write(model, "rope_scaling", std::string(model.rope_scaling.word()));
  const TopKeys top = top_keys(family);
  Json rope = scaling_json(model);
  config["rope_scaling"] = is_scaled ? rope : Json();
  config[top.theta] = model.rope_theta;
  rope["rope_theta"] = model.rope_theta;
  if (family.has("rope_partial"))
    config[top.share] = rope["partial_rotary_factor"] = model.rope_partial;
  else
    config.erase(top.share);
  if (class_defaults(family).contains(kOriginal))
    config.erase(kOriginal);  // it would replace the one within
  else
    set_default(config, kOriginal, model.context);
  if (!family.kind.local_rotary) {
    config["rope_parameters"] = rope;
    return;
  }
  config["rope_local_base_freq"] = model.rope_local_theta;
  config["rope_parameters"] = {
      {"full_attention", rope},
      {"sliding_attention", {{"rope_type", "default"}, {"rope_theta", model.rope_local_theta}}}};
}

}  // namespace gxp
