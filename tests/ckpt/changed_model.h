// Hugging Face directories of tests/data/ckpt, with another config.json.
#pragma once

#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/ckpt/samples.h"

namespace gxp {

inline nlohmann::json config_of(const std::string& directory) {
  return nlohmann::json::parse(read_bytes(directory + "/config.json"));
}

// A copy of the model with `change` made to its config.json.
inline std::string changed_model(const TemporaryDirectory& dir, const std::string& model,
                                 const std::function<void(nlohmann::json&)>& change) {
  const std::string path = dir / ("changed_" + model);
  std::filesystem::remove_all(path);
  std::filesystem::copy(GXP_TEST_DATA "/ckpt/" + model, path);
  nlohmann::json config = config_of(path);
  change(config);
  write_bytes(path + "/config.json", config.dump());
  return path;
}

}  // namespace gxp
