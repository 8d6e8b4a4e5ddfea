#include "lib/config/load.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <set>
#include <utility>
#include <vector>

#include "lib/arch/family.h"
#include "lib/arch/optimizers.h"
#include "lib/base/error.h"
#include "lib/base/text/ascii.h"
#include "lib/base/text/near_match.h"
#include "lib/base/text_file.h"
#include "lib/config/model_source.h"
#include "lib/config/other_names.h"
#include "lib/config/rules.h"
#include "lib/config/settings.h"
#include "lib/config/toml_reader.h"

namespace gxp {
namespace {

struct RenamedSetting {
  std::string_view before, now;
};
constexpr std::array kRenamedSettings = {RenamedSetting{"comm.kernel_copies", "comm.cma"}};

struct Problem {
  Origin origin;
  std::string message;
};

std::string upper(std::string text) {
  for (char& c : text) c = char(std::toupper(static_cast<unsigned char>(c)));
  return text;
}

class Loader {
 public:
  explicit Loader(std::string path) : path_(std::move(path)) {
    for (const Setting& setting : settings()) loaded_.origins[setting.name()] = {};
  }

  // No rule over several settings is judged of this one.
  void allow_any(const std::string& setting) { refused_.insert(setting); }
  void read_file(std::string_view text);
  void read_environment(const Environment& environment);
  void read_set(const std::string& set);
  LoadedConfig finish(bool judge_rules = true) &&;

 private:
  void read_entry(const TomlEntry& entry);
  void apply(const Setting& setting, Value value, const Origin& origin);
  void add_problem(const Origin& origin, std::string message);
  void add_unknown_key(const Origin& origin, std::string_view section, std::string_view key);
  void add_unknown_section(const Origin& origin, std::string_view section);
  void take_models();
  void take_model(const std::string& named_by, const ModelSource& source);
  void add_model_mismatches(const ModelSource& source, const ModelConfig& merged);
  void take_adapter();
  void set_optimizer_defaults();
  void check_rules();
  // A default has no place of its own; what is missing is missing in the file.
  [[nodiscard]] std::string place_of(const Origin& origin) const;

  std::string path_;
  bool readable_ = true;  // the file is TOML, so what it lacks is missing indeed
  LoadedConfig loaded_;
  std::vector<Problem> problems_;
  std::set<std::string> refused_;  // settings of which no rule is judged
};

void Loader::add_problem(const Origin& origin, std::string message) {
  problems_.push_back({origin, std::move(message)});
}

void Loader::add_unknown_key(const Origin& origin, std::string_view section, std::string_view key) {
  const std::string name = fmt::format("{}.{}", section, key);
  const auto renamed = std::ranges::find(kRenamedSettings, name, &RenamedSetting::before);
  if (renamed != kRenamedSettings.end()) {
    add_problem(origin, fmt::format("{}: is now called {}", name, renamed->now));
    return;
  }
  const std::string near = did_you_mean(key, keys_of(section));
  const std::string called = setting_called(key);
  add_problem(origin, fmt::format("{}: unknown key{}", name, called.empty() ? near : called));
}

void Loader::add_unknown_section(const Origin& origin, std::string_view section) {
  const std::string called = section_called(section);
  add_problem(origin,
              fmt::format("{}: unknown section{}", section,
                          called.empty() ? did_you_mean(section, section_names()) : called));
}

void Loader::apply(const Setting& setting, Value value, const Origin& origin) {
  const std::string problem = accept(setting, value);
  if (!problem.empty()) {
    add_problem(origin, setting.name() + ": " + problem);
    refused_.insert(setting.name());
    return;
  }
  setting.set(loaded_.run, value);
  loaded_.origins[setting.name()] = origin;
}

void Loader::read_file(std::string_view text) {
  const TomlDocument document = parse_toml(text);
  readable_ = document.syntax_error.empty();
  if (!readable_) {
    add_problem({Origin::Kind::kFile, path_, document.syntax_error_line},
                "not valid TOML: " + document.syntax_error);
  }
  const std::vector<std::string> known = section_names();
  for (const TomlSection& section : document.sections) {
    if (std::ranges::find(known, section.name) != known.end()) continue;
    add_unknown_section({Origin::Kind::kFile, path_, section.line}, section.name);
  }
  for (const TomlEntry& entry : document.entries) read_entry(entry);
}

void Loader::read_entry(const TomlEntry& entry) {
  const Origin origin{Origin::Kind::kFile, path_, entry.line};
  const std::vector<std::string> keys = keys_of(entry.section);
  if (entry.section.empty()) {
    add_problem(origin,
                fmt::format("{}: must be in a section{}", entry.key, setting_called(entry.key)));
    return;
  }
  if (keys.empty()) return;  // the section is unknown, which has been said
  const Setting* setting = find_setting(entry.section, entry.key);
  if (setting == nullptr) {
    add_unknown_key(origin, entry.section, entry.key);
  } else if (!entry.value) {
    add_problem(origin, fmt::format("{}: must be {}, is {}", setting->name(),
                                    to_string(setting->type), entry.kind));
    refused_.insert(setting->name());
  } else {
    apply(*setting, *entry.value, origin);
  }
}

void Loader::read_environment(const Environment& environment) {
  for (const auto& [variable, text] : environment) {
    for (const SectionInfo& section : sections()) {
      const std::string prefix = "GXP_" + upper(section.name) + "_";
      if (!variable.starts_with(prefix) || text.empty()) continue;
      const Origin origin{Origin::Kind::kEnvironment, variable, 0};
      const std::string key = lower_case(variable.substr(prefix.size()));
      const Setting* setting = find_setting(section.name, key);
      if (setting == nullptr) {
        add_unknown_key(origin, section.name, key);
      } else {
        apply(*setting, parse_text(*setting, text), origin);
      }
    }
  }
}

void Loader::read_set(const std::string& set) {
  const Origin origin{Origin::Kind::kCommandLine, "", 0};
  const size_t equals = set.find('=');
  const size_t dot = set.find('.');
  if (equals == std::string::npos || dot > equals) {
    add_problem(origin, fmt::format("'{}': must be SECTION.KEY=VALUE", set));
    return;
  }
  const std::string section = set.substr(0, dot);
  const std::string key = set.substr(dot + 1, equals - dot - 1);
  const Setting* setting = find_setting(section, key);
  if (setting != nullptr) {
    apply(*setting, parse_text(*setting, set.substr(equals + 1)), origin);
  } else if (keys_of(section).empty()) {
    add_unknown_section(origin, section);
  } else {
    add_unknown_key(origin, section, key);
  }
}

void Loader::take_models() {
  const ModelConfig named = loaded_.run.model;
  if (!named.config.empty()) take_model("model.config", source_of_shape(named.config));
  if (named.init == ModelConfig().init) return;
  if (const auto source = source_of_weights(named.init)) take_model("model.init", *source);
}

// What nobody gave is the file's; what somebody gave must be.
void Loader::take_model(const std::string& named_by, const ModelSource& source) {
  if (!source.obstacle.empty()) {
    add_problem(loaded_.origins[named_by],
                fmt::format("{}: gxp does not compute the model of {}: {}", named_by, source.file,
                            source.obstacle));
    for (const std::string& key : keys_of("model")) refused_.insert("model." + key);
    return;
  }
  RunConfig merged;
  merged.model = source.model;
  for (const Setting& setting : settings()) {
    if (setting.section == "model" &&
        loaded_.origins[setting.name()].kind != Origin::Kind::kDefault)
      setting.set(merged, setting.get(loaded_.run));
  }
  add_model_mismatches(source, merged.model);
  loaded_.run.model = merged.model;
  for (const std::string& key : keys_of("model")) {
    Origin& origin = loaded_.origins["model." + key];
    if (origin.kind == Origin::Kind::kDefault && key != "init" && key != "config")
      origin = {Origin::Kind::kModel, source.file, 0};
  }
}

void Loader::add_model_mismatches(const ModelSource& source, const ModelConfig& merged) {
  const bool same_family = merged.family == source.model.family;
  RunConfig ours, theirs;
  ours.model = merged.resolved();
  theirs.model = source.model.resolved();
  const bool context_is_free = !find_family(merged.family).kind.position_table;
  for (const Setting& setting : settings()) {
    const Origin& origin = loaded_.origins[setting.name()];
    const bool is_free = setting.key == "init" || setting.key == "config" ||
                         (setting.key == "context" && context_is_free) ||
                         (setting.key != "family" && !same_family);
    if (setting.section != "model" || is_free || origin.kind == Origin::Kind::kDefault ||
        refused_.contains(setting.name()) || setting.get(ours) == setting.get(theirs))
      continue;
    add_problem(origin,
                fmt::format("{}: is {}, but {} says {}; leave it out", setting.name(),
                            to_toml(setting.get(ours)), source.file, to_toml(setting.get(theirs))));
    refused_.insert(setting.name());
  }
}

// What lora.init says of the adapter, likewise.
void Loader::take_adapter() {
  const std::string init = loaded_.run.lora.init;
  const auto lora = init.empty() ? std::nullopt : adapter_at(init);
  if (!lora) return;
  RunConfig theirs;
  theirs.lora = *lora;
  for (const Setting& setting : settings()) {
    if (setting.section != "lora" || setting.key == "init") continue;
    Origin& origin = loaded_.origins[setting.name()];
    if (origin.kind == Origin::Kind::kDefault) {
      setting.set(loaded_.run, setting.get(theirs));
      origin = {Origin::Kind::kModel, init, 0};
    } else if (setting.get(loaded_.run) != setting.get(theirs)) {
      add_problem(origin, fmt::format("{}: is {}, but the adapter {} says {}; leave it out",
                                      setting.name(), to_toml(setting.get(loaded_.run)), init,
                                      to_toml(setting.get(theirs))));
    }
  }
}

void Loader::set_optimizer_defaults() {
  for (const OptimizerDefault& preset : find_optimizer(loaded_.run.optim.name).defaults) {
    const Setting& setting = *find_setting("optim", preset.key);
    if (loaded_.origins[setting.name()].kind != Origin::Kind::kDefault) continue;
    Value value = parse_text(setting, std::string(preset.value));
    GXP_ASSERT(accept(setting, value).empty());
    setting.set(loaded_.run, value);
  }
}

void Loader::check_rules() {
  for (const BrokenRule& rule : broken_rules(loaded_.run, refused_)) {
    add_problem(loaded_.origins[rule.setting], rule.setting + ": " + rule.message);
  }
}

std::string Loader::place_of(const Origin& origin) const {
  if (origin.kind != Origin::Kind::kDefault) return to_string(origin);
  return path_.empty() ? "settings" : path_;
}

LoadedConfig Loader::finish(bool judge_rules) && {
  if (readable_ && judge_rules) {
    take_models();
    take_adapter();
  }
  set_optimizer_defaults();
  if (readable_ && judge_rules) check_rules();
  if (problems_.empty()) return std::move(loaded_);
  std::ranges::stable_sort(problems_, {}, [](const Problem& problem) {
    return std::pair(problem.origin.kind, problem.origin.line);
  });
  std::string message;
  if (problems_.size() > 1) message = fmt::format("{} problems in the settings", problems_.size());
  for (const Problem& problem : problems_) {
    if (!message.empty()) message += '\n';
    message += fmt::format("{}: {}", place_of(problem.origin), problem.message);
  }
  throw Error(ErrorKind::kConfig, message);
}

// A run file is a page of text: what is larger is something else, given by mistake.
constexpr size_t kMaxFileBytes = 1u << 20;

LoadedConfig finish_loading(Loader loader, std::span<const std::string> sets,
                            const Environment& environment, bool judge_rules = true) {
  loader.read_environment(environment);
  for (const std::string& set : sets) loader.read_set(set);
  return std::move(loader).finish(judge_rules);
}

}  // namespace

std::string to_string(const Origin& origin) {
  switch (origin.kind) {
    case Origin::Kind::kDefault:
      return "default";
    case Origin::Kind::kModel:
      return "from " + origin.source;
    case Origin::Kind::kFile:
      return fmt::format("{}:{}", origin.source, origin.line);
    case Origin::Kind::kEnvironment:
      return origin.source;
    case Origin::Kind::kCommandLine:
      return "--set";
  }
  return "";
}

LoadedConfig parse_config(std::string_view text, const std::string& path,
                          std::span<const std::string> sets, const Environment& environment) {
  Loader loader(path);
  loader.read_file(text);
  return finish_loading(std::move(loader), sets, environment);
}

CommConfig load_comm_config(std::span<const std::string> sets, const Environment& environment) {
  for (const std::string& set : sets) {
    if (!set.starts_with("comm."))
      fail(ErrorKind::kConfig, "--set {}: this command takes settings of [comm] only", set);
  }
  return finish_loading(Loader(""), sets, environment, false).run.comm;
}

LoadedConfig load_config(const std::string& path, std::span<const std::string> sets,
                         const Environment& environment, bool trains) {
  Loader loader(path);
  if (!trains) loader.allow_any("data.train");
  if (!path.empty()) loader.read_file(read_text_file(path, kMaxFileBytes, "run file"));
  return finish_loading(std::move(loader), sets, environment);
}

}  // namespace gxp
