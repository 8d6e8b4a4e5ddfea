#include "lib/config/model_source.h"

#include <fmt/format.h>

#include <filesystem>

#include "lib/arch/adapter_config.h"
#include "lib/base/json/json.h"
#include "lib/base/text_file.h"
#include "lib/config/rules.h"
#include "lib/config/settings.h"

namespace gxp {
namespace fs = std::filesystem;
namespace {

constexpr size_t kMaxConfigBytes = 16u << 20;

Json read_object(const std::string& file) {
  Json config = parse_python_json(read_text_file(file, kMaxConfigBytes, "config.json"), file);
  to_object(config, "read " + file);
  return config;
}

ModelSource source_in(const std::string& file, const Json& config) {
  ModelReading reading = read_checked_model(config);
  return {file, std::move(reading.model), std::move(reading.obstacle)};
}

bool is_file(const std::string& path) {
  std::error_code error;
  return fs::is_regular_file(path, error);
}

}  // namespace

std::optional<ModelSource> source_of_weights(const std::string& init) {
  std::error_code error;
  const bool is_directory = fs::is_directory(init, error);
  const fs::path directory = is_directory ? fs::path(init) : fs::path(init).parent_path();
  const std::string file = directory / "config.json";
  if (!is_file(file) || (!is_directory && (!is_file(init) || init.ends_with(".gguf"))))
    return std::nullopt;
  const Json config = read_object(file);
  if (!is_directory && !config.contains("model_type")) return std::nullopt;
  return source_in(file, config);
}

ModelSource source_of_shape(const std::string& path) {
  std::error_code error;
  const std::string file =
      fs::is_directory(path, error) ? std::string(fs::path(path) / "config.json") : path;
  return source_in(file, read_object(file));
}

std::optional<LoraConfig> adapter_at(const std::string& init) {
  const std::string file = fs::path(init) / "adapter_config.json";
  if (!is_file(file)) return std::nullopt;
  return read_adapter_config(read_text_file(file, kMaxConfigBytes, "adapter_config.json"), file)
      .lora;
}

ModelReading read_checked_model(const Json& config) {
  ModelReading reading = read_model(config);
  if (reading.obstacle.empty()) reading.obstacle = first_model_problem(reading.model);
  return reading;
}

std::string first_model_problem(const ModelConfig& model) {
  RunConfig run;
  run.model = model;
  for (const Setting& setting : settings()) {
    if (setting.section != "model") continue;
    Value value = setting.get(run);
    if (const std::string problem = accept(setting, value); !problem.empty())
      return fmt::format("{} {}", setting.name(), problem);
  }
  for (const BrokenRule& rule : broken_rules(run))
    if (rule.setting.starts_with("model.")) return fmt::format("{} {}", rule.setting, rule.message);
  return "";
}

}  // namespace gxp
