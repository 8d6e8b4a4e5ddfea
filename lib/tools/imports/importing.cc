#include "lib/tools/imports/importing.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>

#include "lib/base/error.h"
#include "lib/base/text/ascii.h"
#include "lib/base/text/near_match.h"
#include "lib/config/settings.h"
#include "lib/tools/imports/programs.h"

namespace gxp {
namespace {

bool fits(const KeyRule& rule, std::string_view name) {
  if (rule.key.ends_with('*')) return name.starts_with(rule.key.substr(0, rule.key.size() - 1));
  return rule.key == name;
}

const KeyRule* find_rule(std::span<const KeyRule> rules, std::string_view name) {
  const KeyRule* best = nullptr;
  for (const KeyRule& rule : rules) {
    if (!fits(rule, name)) continue;
    if (best == nullptr || rule.key.size() > best->key.size()) best = &rule;
  }
  return best;
}

bool is_block(std::span<const KeyRule> rules, const std::string& name) {
  return std::ranges::any_of(rules,
                             [&](const KeyRule& rule) { return rule.key.starts_with(name + "."); });
}

// The key that has a block in the file, and a value in the program; or "".
std::string_view value_around(std::span<const KeyRule> rules, std::string_view name) {
  for (size_t dot = name.rfind('.'); dot != std::string_view::npos && dot > 0;
       dot = name.rfind('.', dot - 1)) {
    const std::string_view outer = name.substr(0, dot);
    if (std::ranges::find(rules, outer, &KeyRule::key) != rules.end()) return outer;
  }
  return "";
}

}  // namespace

const Value* ImportResult::find(std::string_view setting) const {
  const auto found = std::ranges::find(settings, setting, &ImportedSetting::first);
  if (found != settings.end()) return &found->second;
  const auto preset = std::ranges::find(defaults, setting, &SourceDefault::setting);
  return preset != defaults.end() && preset->value ? &*preset->value : nullptr;
}

Importing::Importing(const ImportRequest& request, ImportedFile file)
    : request_(request), file_(std::move(file)), resolved_(file_.keys.size()) {
  result_.path = file_.path;
  result_.kind = file_.kind;
}

void Importing::judge(std::span<const KeyRule> rules, bool ignores_unknown) {
  rules_ = rules;
  for (at_ = 0; at_ < file_.keys.size(); ++at_) {
    const SourceKey& key = file_.keys[at_];
    result_.keys.push_back({.key = key.name, .value = key.value, .resolved = resolved_[at_]});
    const KeyRule* rule = find_rule(rules, key.name);
    if (rule != nullptr) {
      rule->apply(*this, *rule);
    } else if (is_block(rules, key.name) && is_false(key.value)) {
      ignore("off: nothing to do");
    } else if (is_block(rules, key.name)) {
      refuse("a block of keys was expected");
    } else if (const std::string_view outer = value_around(rules, key.name); !outer.empty()) {
      refuse(fmt::format("{} is one value, not a block of keys", outer));
    } else {
      unknown(fmt::format("unknown key{}{}", ignores_unknown ? ", which the program ignores" : "",
                          nearest_key()),
              !ignores_unknown);
    }
  }
}

std::string Importing::nearest_key() const {
  const std::string_view name = this->name();
  const size_t block = name.rfind('.') + 1;  // npos + 1 is 0
  std::vector<std::string> names;
  for (const KeyRule& rule : rules_) {
    const bool is_near = rule.key.substr(0, block) == name.substr(0, block);
    const std::string_view rest = is_near ? rule.key.substr(block) : "";
    const std::string_view word = rest.substr(0, rest.find('.'));
    if (!word.empty() && word != "*") names.emplace_back(word);
  }
  return did_you_mean(name.substr(block), names);
}

void Importing::rename(std::string_view before, const std::string& now,
                       std::optional<SourceTree> value) {
  for (SourceKey& key : file_.keys) {
    if (key.name != before) continue;
    key.name = now;
    renamed_.emplace_back(before, now);
    if (value) key.value = std::move(*value);
    return;
  }
}

void Importing::report_as(std::string_view now, std::string_view before) {
  const auto is_renamed = [&](const auto& pair) { return pair.first == before; };
  if (std::ranges::none_of(renamed_, is_renamed)) return;
  const auto key = std::ranges::find(result_.keys, now, &ImportedKey::key);
  if (key == result_.keys.end()) return;
  key->key = before;
  if (key->note.empty()) key->note = "an older spelling";
}

ImportResult Importing::take() && { return std::move(result_); }

const SourceTree& Importing::value() const {
  return resolved_[at_] ? *resolved_[at_] : file_.keys[at_].value;
}

bool Importing::is_switched_on() {
  if (is_true(value())) return true;
  if (is_false(value()))
    ignore("off");
  else
    refuse("true or false was expected");
  return false;
}

const SourceTree* Importing::find(std::string_view key) const {
  const auto found = std::ranges::find(file_.keys, key, &SourceKey::name);
  if (found == file_.keys.end()) return nullptr;
  const auto& resolved = resolved_[size_t(found - file_.keys.begin())];
  const SourceTree& value = resolved ? *resolved : found->value;
  return value.is_null() ? nullptr : &value;
}

bool Importing::is_on(std::string_view key) const {
  const SourceTree* value = find(key);
  return value != nullptr && is_true(*value);
}

std::string Importing::word(std::string_view key) const {
  const SourceTree* value = find(key);
  return value != nullptr && value->is_string() ? lower_case(value->get<std::string>()) : "";
}

std::optional<double> Importing::number(std::string_view key) const {
  const SourceTree* value = find(key);
  return value != nullptr ? to_number(*value) : std::nullopt;
}

void Importing::decide(Verdict verdict, std::vector<ImportedSetting> settings,
                       std::string_view note) {
  ImportedKey& key = result_.keys.back();
  key.verdict = verdict;
  key.note = note;
  for (const auto& [setting, value] : settings) set(setting, value);
  key.settings = std::move(settings);
}

void Importing::map(std::vector<ImportedSetting> settings, std::string_view note) {
  decide(Verdict::kMapped, std::move(settings), note);
}

void Importing::change(std::vector<ImportedSetting> settings, std::string_view note) {
  decide(Verdict::kChanged, std::move(settings), note);
}

void Importing::ignore(std::string_view note) { decide(Verdict::kIgnored, {}, note); }

void Importing::refuse(std::string_view note) {
  decide(Verdict::kRefused, {}, note);
  const bool is_flag = file_.kind == SourceKind::kLlmc;
  error(is_flag ? fmt::format("{} {}: {}", name(), value().get<std::string>(), note)
                : fmt::format("{}: {}", name(), note));
}

void Importing::unknown(std::string_view note, bool is_error) {
  decide(Verdict::kUnknown, {}, note);
  if (is_error) error(fmt::format("{}: {}", name(), note));
}

void Importing::take_value(std::string_view setting, std::string_view note, bool changed) {
  ConvertedValue converted = convert_to(setting, value());
  if (!converted.value)
    refuse(fmt::format("{} {}", setting, converted.problem));
  else
    decide(changed ? Verdict::kChanged : Verdict::kMapped,
           {{std::string(setting), std::move(*converted.value)}}, note);
}

void Importing::add(ImportedKey key) { result_.keys.push_back(std::move(key)); }

void Importing::set(std::string_view setting, Value value) {
  std::erase_if(result_.defaults,
                [&](const SourceDefault& preset) { return preset.setting == setting; });
  const auto found = std::ranges::find(result_.settings, setting, &ImportedSetting::first);
  if (found == result_.settings.end())
    result_.settings.emplace_back(setting, std::move(value));
  else
    found->second = std::move(value);
}

void Importing::yield(std::string_view setting) {
  std::erase_if(result_.settings, [&](const auto& each) { return each.first == setting; });
}

void Importing::set_default(std::string_view setting, std::optional<Value> value,
                            std::string words) {
  const bool is_decided = std::ranges::find(result_.settings, setting, &ImportedSetting::first) !=
                              result_.settings.end() ||
                          std::ranges::find(result_.defaults, setting, &SourceDefault::setting) !=
                              result_.defaults.end();
  if (!is_decided)
    result_.defaults.push_back({std::string(setting), std::move(value), std::move(words)});
}

void Importing::set_batch(ImportedBatch batch) {
  if (batch.error.empty()) {
    set("train.micro_batch", batch.sizes.micro);
    set("train.grad_accum", batch.sizes.grad_accum);
  } else {
    error(batch.error);
  }
  result_.batch = std::move(batch);
}

ImportedFile Importing::take_block(const std::string& block) {
  ImportedFile inner{.path = fmt::format("{}: {}", file_.path, block),
                     .kind = SourceKind::kDeepSpeed};
  const std::string prefix = block + ".";
  std::erase_if(file_.keys, [&](const SourceKey& key) {
    if (!key.name.starts_with(prefix)) return false;
    inner.keys.push_back({key.name.substr(prefix.size()), key.value});
    return true;
  });
  resolved_.assign(file_.keys.size(), std::nullopt);
  return inner;
}

std::string Importing::path_beside(const std::string& path) const {
  namespace fs = std::filesystem;
  const fs::path beside = fs::path(file_.path).parent_path() / path;
  std::error_code ignored;
  return fs::exists(beside, ignored) ? beside.lexically_normal().string() : path;
}

void Importing::import_deepspeed_file(ImportedFile inner, const ImportRequest& request) {
  const std::string prefix = inner.path + ": ";
  for (const std::string& flaw : inner.flaws) error(flaw);
  if (inner.flaws.empty() && inner.kind != SourceKind::kDeepSpeed)
    error(prefix + "it is no DeepSpeed JSON");
  if (!inner.flaws.empty() || inner.kind != SourceKind::kDeepSpeed) return;
  Importing import(request, std::move(inner));
  deepspeed::judge(import);
  merge(std::move(import).take(), prefix);
}

void Importing::merge(ImportResult nested, const std::string& prefix) {
  for (ImportedKey& key : nested.keys) {
    key.key = prefix + key.key;
    result_.keys.push_back(std::move(key));
  }
  for (const std::string& text : nested.errors) error(prefix + text);
  for (auto& [setting, value] : nested.settings) {
    const auto ours = std::ranges::find(result_.settings, setting, &ImportedSetting::first);
    if (ours != result_.settings.end() && ours->second != value)
      error(fmt::format("{}{} is {} there and {} here; let it be \"auto\" there", prefix, setting,
                        to_toml(value), to_toml(ours->second)));
    else
      set(setting, std::move(value));
  }
  for (SourceDefault& preset : nested.defaults) {
    const auto ours = std::ranges::find(result_.settings, preset.setting, &ImportedSetting::first);
    if (ours != result_.settings.end() && preset.value && ours->second != *preset.value)
      error(fmt::format("{}{} is {} there, its default, and {} here; let it be \"auto\" there",
                        prefix, preset.setting, to_toml(*preset.value), to_toml(ours->second)));
    set_default(preset.setting, std::move(preset.value), std::move(preset.words));
  }
  if (nested.batch) result_.batch = std::move(nested.batch);
}

void Importing::assume(std::string_view name, std::string_view note) {
  const auto key = std::ranges::find(result_.keys, name, &ImportedKey::key);
  if (key == result_.keys.end() || key->verdict == Verdict::kRefused) return;
  if (key->verdict == Verdict::kMapped) key->verdict = Verdict::kChanged;
  key->note += fmt::format("{}{}", key->note.empty() ? "" : "; ", note);
}

std::optional<std::string> Importing::argument(const std::string& name) const {
  const auto found = request_.arguments.find(name);
  return found == request_.arguments.end() ? std::nullopt : std::optional(found->second);
}

void Importing::resolve_auto(std::optional<SourceTree> (*resolve)(const Importing&,
                                                                  const SourceKey&)) {
  for (size_t i = 0; i < file_.keys.size(); ++i) {
    if (file_.keys[i].value == "auto") resolved_[i] = resolve(*this, file_.keys[i]);
  }
}

void Importing::resolve_key(std::string_view key, SourceTree value) {
  const auto found = std::ranges::find(file_.keys, key, &SourceKey::name);
  if (found != file_.keys.end()) resolved_[size_t(found - file_.keys.begin())] = std::move(value);
}

std::optional<int64_t> Importing::model_width() const {
  const auto given = argument("hidden_size");
  if (!given) return request_.hidden_size;
  const double width = to_number(SourceTree(*given)).value_or(0);
  if (width < 1 || width > 1e6 || std::floor(width) != width)
    fail(ErrorKind::kConfig, "--import-arg hidden_size={}: must be from 1 to 1000000", *given);
  return int64_t(width);
}

std::optional<double> to_number(const SourceTree& value) {
  if (value.is_boolean()) return std::nullopt;
  if (value.is_number()) return value.get<double>();
  if (!value.is_string()) return std::nullopt;
  const std::string text = value.get<std::string>();
  double number = 0;
  const char* end = text.data() + text.size();
  const auto result = std::from_chars(text.data() + (text.starts_with('+') ? 1 : 0), end, number);
  if (result.ec != std::errc() || result.ptr != end || !std::isfinite(number)) return std::nullopt;
  return number;
}

bool is_true(const SourceTree& value) {
  if (value.is_boolean()) return value.get<bool>();
  if (value.is_number()) return value == 1;
  const std::string word = value.is_string() ? lower_case(value.get<std::string>()) : "";
  return word == "true" || word == "yes" || word == "on" || word == "1";
}

bool is_false(const SourceTree& value) {
  if (value.is_null() || value.is_array() || value.is_object()) return value.empty();
  if (value.is_boolean()) return !value.get<bool>();
  if (value.is_number()) return value == 0;
  const std::string word = lower_case(value.get<std::string>());
  return word.empty() || word == "no" || word == "none" || word == "false" || word == "off" ||
         to_number(value) == 0;
}

std::string to_words(const SourceTree& value) {
  return value.is_string() ? value.get<std::string>() : to_line(value);
}

std::string to_lower_words(const SourceTree& value) { return lower_case(to_words(value)); }

ConvertedValue convert_to(std::string_view name, const SourceTree& value) {
  const size_t dot = name.find('.');
  const Setting* setting =
      find_setting(name.substr(0, dot), name.substr(std::min(dot + 1, name.size())));
  const bool is_option = setting == nullptr;  // "--nproc"
  const SettingType type = is_option ? SettingType::kInteger : setting->type;
  const std::optional<double> number = to_number(value);
  Value result;
  if (type == SettingType::kBool && (is_true(value) || is_false(value))) {
    result = is_true(value);
  } else if (type == SettingType::kNumber && number) {
    result = *number;
  } else if ((type == SettingType::kInteger || type == SettingType::kBytes) && number &&
             std::floor(*number) == *number && std::fabs(*number) < 9e18) {
    result = value.is_number_integer() ? value.get<int64_t>() : int64_t(*number);
  } else if (type == SettingType::kText && value.is_string()) {
    return {value.get<std::string>(), ""};  // its words, if it has any, are those of our tables
  } else if (type == SettingType::kTextList && value.is_string()) {
    return {std::vector<std::string>{value.get<std::string>()}, ""};
  } else {
    return {std::nullopt, fmt::format("must be {}, is {}", to_string(type), to_line(value))};
  }
  // An option's range is its own, but no option counts below 0.
  if (is_option && std::get<int64_t>(result) < 0) return {std::nullopt, "must be at least 0"};
  const std::string problem = is_option ? "" : accept(*setting, result);
  if (!problem.empty()) return {std::nullopt, problem};
  return {std::move(result), ""};
}

}  // namespace gxp
