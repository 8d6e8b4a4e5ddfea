// What differs between layers: windows (sliding_window and what goes with it) and rotary positions
// (no_rope_layers).
#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "lib/arch/config_json/config_keys.h"
#include "lib/arch/layer_set.h"
#include "lib/base/error.h"

namespace gxp {
namespace {

constexpr const char* kSliding = "sliding_attention";
constexpr const char* kFull = "full_attention";

using Layers = std::vector<bool>;

bool is_any(const Layers& layers) { return std::ranges::find(layers, true) != layers.end(); }
bool are_all(const Layers& layers) { return std::ranges::find(layers, false) == layers.end(); }

// The layers whose entry of the list is `with`; the others' is `without`. Nothing if the list is
// none of so many of those.
std::optional<Layers> parse_list(const Json& list, int layers, const Json& with,
                                 const Json& without) {
  if (!list.is_array() || list.size() != size_t(layers)) return std::nullopt;
  Layers found;
  for (const Json& entry : list) {
    if (entry != with && entry != without) return std::nullopt;
    found.push_back(entry == with);
  }
  return found;
}

Json list_of(const Layers& layers, const Json& with, const Json& without) {
  Json list = Json::array();
  for (const bool is_in : layers) list.push_back(is_in ? with : without);
  return list;
}

std::string list_problem(std::string_view key, const Json& list, const ModelInJson& in,
                         std::string_view words) {
  return fmt::format("{} is {}, not a list of {} for {} layers", key, to_words(list), words,
                     in.model.layers);
}

bool has_layer_types(const Family& family) {
  return class_defaults(family).contains("layer_types");
}

std::string read_unrotated(ModelInJson& in) {
  if (!in.family.has("unrotated_layers")) return "";
  const Json list = in.config["no_rope_layers"];
  Layers rotated(size_t(in.model.layers));
  if (list.is_null()) {
    const Json interval = in.config["no_rope_layer_interval"];
    if (!is_size(interval))
      return fmt::format("no_rope_layer_interval is {}, not a positive number", to_words(interval));
    for (size_t i = 0; i < rotated.size(); ++i) rotated[i] = (i + 1) % interval.get<size_t>() != 0;
  } else if (const auto told = parse_list(list, in.model.layers, 1, 0)) {
    rotated = *told;
  } else {
    return list_problem("no_rope_layers", list, in, "0 and 1");
  }
  rotated.flip();
  in.model.unrotated_layers = layers_in_words(rotated);
  return "";
}

// Where layer_types does not say it.
Layers usual_windows(const ModelInJson& in, bool has_window) {
  const auto unrotated = parse_layers(in.model.unrotated_layers, in.model.layers);
  const auto has = [&](size_t i) -> bool {
    if (in.family.name == "gemma2") return i % 2 == 0;
    if (in.family.name == "gemma3_text")
      return (i + 1) % in.config["sliding_window_pattern"].get<size_t>() != 0;
    if (in.family.name == "smollm3") return has_window && (*unrotated)[i];
    return has_window && i >= in.config["max_window_layers"].get<size_t>();
  };
  Layers layers;
  for (size_t i = 0; i < size_t(in.model.layers); ++i) layers.push_back(has(i));
  return layers;
}

std::string window_key_problem(const ModelInJson& in) {
  const auto problem = [&](const char* key, bool is_right, const char* wanted) {
    const bool fits = !in.config.contains(key) || is_right;
    return fits ? "" : fmt::format("{} is {}, {}", key, to_words(in.config[key]), wanted);
  };
  const Json window = value_of(in.config, "sliding_window");
  std::string text = problem("sliding_window", window.is_null() || is_size(window),
                             "neither null nor a positive number");
  if (text.empty())
    text = problem("use_sliding_window", value_of(in.config, "use_sliding_window").is_boolean(),
                   "neither true nor false");
  const Json first = value_of(in.config, "max_window_layers");
  if (text.empty())
    text = problem("max_window_layers", first.is_number_integer() && first >= 0, "not a number");
  if (text.empty())
    text = problem("sliding_window_pattern", is_size(value_of(in.config, "sliding_window_pattern")),
                   "not a positive number");
  return text;
}

std::string read_windows(ModelInJson& in) {
  if (auto text = window_key_problem(in); !text.empty()) return text;
  const bool is_off = value_of(in.config, "use_sliding_window") == false;
  const Json window = is_off ? Json() : value_of(in.config, "sliding_window");
  const Json list = value_of(in.told, "layer_types");
  const auto told = parse_list(list, in.model.layers, kSliding, kFull);
  if (!list.is_null() && !told)
    return list_problem("layer_types", list, in, "sliding_attention and full_attention");
  const Layers all(size_t(in.model.layers), !window.is_null());
  const Layers layers = !has_layer_types(in.family) ? all
                        : told                      ? *told
                                                    : usual_windows(in, !window.is_null());
  // Where the class does not read the list, it must say the same.
  if (told && *told != layers)
    return fmt::format("layer_types is {}, and {} does not read it", to_words(list),
                       in.family.architecture);
  if (!is_any(layers)) return "";
  if (window.is_null())
    return fmt::format("{}, and there are layers with a window",
                       is_off ? "use_sliding_window is false" : "sliding_window is null");
  in.model.window = window.get<int>();
  in.model.window_layers = layers_in_words(layers);
  return "";
}

Layers windows_of(const ModelConfig& model) {
  const auto layers = parse_layers(model.window > 0 ? model.window_layers : "", model.layers);
  GXP_ASSERT(layers);  // by the rules of [model]
  return *layers;
}

// The first layer from which on all have a window; as many as there are if there is no such layer.
int first_of_windows(const Layers& layers) {
  const auto last_full = std::find(layers.rbegin(), layers.rend(), false);
  const auto first = size_t(layers.rend() - last_full);
  const Layers before(layers.begin(), layers.begin() + std::ptrdiff_t(first));
  return int(is_any(before) ? layers.size() : first);
}

// The n for which layers n - 1, 2 n - 1, ... are those without a window; null if there is none.
Json pattern_of(const Layers& layers) {
  const size_t n = size_t(std::ranges::find(layers, false) - layers.begin()) + 1;
  for (size_t i = 0; i < layers.size(); ++i)
    if (layers[i] != ((i + 1) % n != 0)) return nullptr;
  return n;
}

void write_windows(const ModelConfig& model, Json& config) {
  const Family& family = find_family(model.family);
  const Layers layers = windows_of(model);
  const bool has_window = is_any(layers);
  const Json& keys = class_defaults(family);
  config["sliding_window"] = has_window ? Json(model.window) : Json();
  if (!has_layer_types(family)) {
    if (has_window && !are_all(layers)) fail_to_write(model, "window_layers", model.window_layers);
    config.erase("layer_types");
    return;
  }
  config["layer_types"] = list_of(layers, kSliding, kFull);
  if (keys.contains("use_sliding_window"))
    config["use_sliding_window"] = has_window;
  else if (!has_window)
    config["sliding_window"] = keys["sliding_window"];  // null is no value of the class
  if (keys.contains("max_window_layers")) config["max_window_layers"] = first_of_windows(layers);
  if (keys.contains("sliding_window_pattern")) {
    config["sliding_window_pattern"] = pattern_of(layers);
    if (config["sliding_window_pattern"].is_null()) config.erase("sliding_window_pattern");
  }
}

}  // namespace

std::string read_layers(ModelInJson& in) {
  if (in.model.layers > kMostLayers)
    return fmt::format("the number of layers is {}, more than {}", in.model.layers, kMostLayers);
  if (auto problem = read_unrotated(in); !problem.empty()) return problem;
  return read_windows(in);
}

void write_layers(const ModelConfig& model, Json& config) {
  const Family& family = find_family(model.family);
  if (family.has("unrotated_layers")) {
    const auto unrotated = parse_layers(model.unrotated_layers, model.layers);
    GXP_ASSERT(unrotated);
    config["no_rope_layers"] = list_of(*unrotated, 0, 1);
    if (!config.contains("no_rope_layer_interval"))
      config["no_rope_layer_interval"] = class_defaults(family)["no_rope_layer_interval"];
  }
  if (family.has("window")) write_windows(model, config);
}

}  // namespace gxp
