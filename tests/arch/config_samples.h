// The config.json files of tests/data/models.
#pragma once

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "lib/base/json/json.h"
#include "lib/base/text_file.h"

namespace gxp {

inline const std::string kModels = GXP_TEST_DATA "/models/";

inline Json json_in(const std::string& path) {
  return parse_json(read_text_file(path, size_t{1} << 20, "test data"), path);
}
inline Json config_of(const std::string& model) {
  return json_in(kModels + model + "/config.json");
}

// Those with weights; adapters have no config.json.
inline std::vector<std::string> model_samples() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(kModels))
    if (std::filesystem::exists(entry.path() / "config.json"))
      names.push_back(entry.path().filename());
  std::ranges::sort(names);
  return names;
}

// Their frequencies depend on a batch, so gxp does not compute them.
inline bool is_refused(const std::string& model) {
  return model == "llama-rope-dynamic" || model == "phi3-longrope";
}

}  // namespace gxp
