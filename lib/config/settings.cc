#include "lib/config/settings.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <optional>
#include <tuple>
#include <type_traits>
#include <utility>

#include "lib/arch/family.h"
#include "lib/arch/optimizers.h"
#include "lib/base/bytes.h"
#include "lib/base/choice.h"
#include "lib/base/text/joined.h"
#include "lib/base/text/near_match.h"
#include "lib/base/text/word_aliases.h"

namespace gxp {
namespace {

template <class Member>
constexpr SettingType type_of(std::string_view key) {
  if constexpr (std::is_same_v<Member, bool>) return SettingType::kBool;
  if constexpr (std::is_same_v<Member, double>) return SettingType::kNumber;
  if constexpr (std::is_same_v<Member, std::string>) return SettingType::kText;
  if constexpr (std::is_same_v<Member, std::vector<std::string>>) return SettingType::kTextList;
  if constexpr (std::is_same_v<Member, std::vector<double>>) return SettingType::kNumberList;
  return key.ends_with("_bytes") ? SettingType::kBytes : SettingType::kInteger;
}

// The alternative of Value that holds a Member.
template <class Member>
using Held = std::conditional_t<std::is_integral_v<Member> && !std::is_same_v<Member, bool>,
                                int64_t, Member>;

template <class Member>
constexpr int64_t largest_of() {
  constexpr auto kLargest = std::numeric_limits<int64_t>::max();  // TOML has no larger integer
  return std::is_same_v<Member, int> ? std::numeric_limits<int>::max() : kLargest;
}

// The sections with settings that not all rows of a table have, who has one, and all rows.
struct OwnedSection {
  std::string_view section;
  std::string_view named_by;
  std::vector<std::string_view> (*owners)(std::string_view key);
  std::vector<std::string_view> (*names)();
};
constexpr OwnedSection kOwnedSections[] = {
    {"model", "model.family", families_with, family_names},
    {"optim", "optim.name", optimizers_with, optimizer_names}};

void add_owners(Setting& setting) {
  const auto* owned = std::ranges::find(kOwnedSections, setting.section, &OwnedSection::section);
  if (owned == std::end(kOwnedSections)) return;
  setting.owners = owned->owners(setting.key);
  setting.named_by = owned->named_by;
  if (setting.owners.empty()) return;
  setting.others = owned->names();
  std::erase_if(setting.others, [&](std::string_view name) {
    return std::ranges::find(setting.owners, name) != setting.owners.end();
  });
  const bool names_others =
      setting.owners.size() > kMostNames && setting.others.size() <= kMostNames;
  setting.doc = names_others ? fmt::format("Not for {}. {}", few_of(setting.others), setting.doc)
                             : fmt::format("{} only. {}", few_of(setting.owners), setting.doc);
}

template <class T>
struct Inner {
  using Type = T;
};
template <class T>
struct Inner<std::optional<T>> {
  using Type = T;
};

struct Schema {
  std::vector<SectionInfo> sections;
  std::vector<Setting> settings;
};

// Takes down what a section's schema() declares.
template <class Struct>
class FieldReader {
 public:
  FieldReader(Struct RunConfig::*part, Schema& schema) : part_(part), schema_(schema) {}

  void section(std::string_view name, std::string_view doc) {
    schema_.sections.push_back({std::string(name), doc});
  }

  template <class Member>
  void operator()(std::string_view key, Member Struct::*member, std::string_view doc,
                  const Check& check = anything, const OptionForm& option = {}) {
    add<Held<Member>>(key, member, doc, type_of<Member>(key), check, option);
  }
  template <class E>
  void operator()(std::string_view key, Choice<E> Struct::*member, std::string_view doc,
                  const OptionForm& option = {}) {
    add<std::string>(key, member, doc, SettingType::kText, one_of(Choice<E>::kWords), option);
  }
  template <class Member>
  void operator()(std::string_view key, std::optional<Member> Struct::*member,
                  Member (Struct::*value)() const, std::string_view doc) {
    constexpr bool kIsBool = std::is_same_v<Member, bool>;
    using Held = std::conditional_t<kIsBool, bool, std::string>;
    if constexpr (kIsBool)
      add<Held>(key, member, doc, SettingType::kBool, anything, {});
    else
      add<Held>(key, member, doc, SettingType::kText, one_of(Member::kWords), {});
    Setting& setting = schema_.settings.back();
    setting.default_varies = true;
    setting.get = [part = part_, value](const RunConfig& run) -> Value {
      return Held((run.*part.*value)());
    };
    setting.is_default = [part = part_, member, value](const RunConfig& run) {
      Struct unset = run.*part;
      unset.*member = std::nullopt;
      return Held((unset.*value)()) == Held((run.*part.*value)());
    };
  }

 private:
  template <class Held, class Member>
  void add(std::string_view key, Member Struct::*member, std::string_view doc, SettingType type,
           const Check& check, const OptionForm& option) {
    using Inner = typename Inner<Member>::Type;
    Setting setting{.section = schema_.sections.back().name,
                    .key = std::string(key),
                    .doc = std::string(doc),
                    .type = type,
                    .check = check,
                    .largest = largest_of<Member>(),
                    .set =
                        [part = part_, member](RunConfig& run, const Value& value) {
                          run.*part.*member = Inner(std::get<Held>(value));
                        },
                    .option = option};
    if constexpr (std::is_same_v<Inner, Member>) {
      setting.get = [part = part_, member](const RunConfig& run) -> Value {
        return Held(run.*part.*member);
      };
      setting.is_default = [part = part_, member](const RunConfig& run) {
        return Held(run.*part.*member) == Held(Struct().*member);
      };
    }
    add_owners(setting);
    schema_.settings.push_back(std::move(setting));
  }

  Struct RunConfig::*part_;
  Schema& schema_;
};

template <class Struct>
void append(Struct RunConfig::*part, Schema& schema) {
  FieldReader field(part, schema);
  Struct::schema(field);
}

const Schema& schema_of_run() {
  static const Schema kSchema = [] {
    Schema schema;
    std::apply([&](auto... part) { (append(part, schema), ...); }, RunConfig::sections());
    return schema;
  }();
  return kSchema;
}

// Turns `value` into the alternative of `setting.type`; false if it cannot be one.
bool convert(const Setting& setting, Value& value) {
  switch (setting.type) {
    case SettingType::kBool:
      return std::holds_alternative<bool>(value);
    case SettingType::kText:
      return std::holds_alternative<std::string>(value);
    case SettingType::kTextList:
      if (const auto* text = std::get_if<std::string>(&value))  // a list of one
        value = std::vector<std::string>{*text};
      return std::holds_alternative<std::vector<std::string>>(value);
    case SettingType::kNumberList:
      // An empty list says nothing of its type.
      if (const auto* texts = std::get_if<std::vector<std::string>>(&value);
          texts && texts->empty())
        value = std::vector<double>();
      return std::holds_alternative<std::vector<double>>(value);
    case SettingType::kInteger:
      return std::holds_alternative<int64_t>(value);
    case SettingType::kNumber:
      if (const auto* integer = std::get_if<int64_t>(&value)) value = double(*integer);
      return std::holds_alternative<double>(value);
    case SettingType::kBytes:
      if (const auto* text = std::get_if<std::string>(&value)) {
        const std::optional<uint64_t> bytes = parse_bytes(*text);
        if (bytes && *bytes <= uint64_t(setting.largest)) value = int64_t(*bytes);
      }
      return std::holds_alternative<int64_t>(value);
  }
  return false;
}

bool in_range(const Check& check, double number) {
  const bool low_ok = check.low_is_open ? number > check.low : number >= check.low;
  const bool high_ok = check.high_is_open ? number < check.high : number <= check.high;
  return low_ok && high_ok;  // false for NaN
}

std::string range_problem(const Setting& setting, double number, const Value& value) {
  if (!std::isfinite(number)) return "must be finite, is " + to_toml(value);
  if (in_range(setting.check, number)) return "";
  return fmt::format("must be {}, is {}", to_string(setting.check), to_toml(value));
}

std::vector<std::string> split_at_commas(std::string_view text) {
  std::vector<std::string> parts;
  while (!text.empty()) {
    const size_t comma = std::min(text.find(','), text.size());
    parts.emplace_back(text.substr(0, comma));
    text.remove_prefix(std::min(comma + 1, text.size()));
  }
  return parts;
}

std::string word_problem(const Check& check, const std::string& word) {
  const auto& words = check.words;
  if (words.empty() || std::ranges::find(words, word) != words.end()) return "";
  const std::vector<std::string> names(words.begin(), words.end());
  return fmt::format("must be {}; it is {}{}", to_string(check), to_toml(word),
                     did_you_mean(word, names));
}

}  // namespace

std::string_view to_string(SettingType type) {
  constexpr std::array<std::string_view, 7> kTypes = {
      "true or false",    "an integer", "bytes, as an integer or like \"25MiB\"",
      "a number",         "a string",   "a list of strings",
      "a list of numbers"};
  return kTypes[size_t(type)];
}

const std::vector<Setting>& settings() { return schema_of_run().settings; }

const std::vector<SectionInfo>& sections() { return schema_of_run().sections; }

std::vector<std::string> section_names() {
  std::vector<std::string> names;
  for (const SectionInfo& section : sections()) names.push_back(section.name);
  return names;
}

std::vector<std::string> keys_of(std::string_view section) {
  std::vector<std::string> keys;
  for (const Setting& setting : settings()) {
    if (setting.section == section) keys.push_back(setting.key);
  }
  return keys;
}

const Setting* find_setting(std::string_view section, std::string_view key) {
  for (const Setting& setting : settings()) {
    if (setting.section == section && setting.key == key) return &setting;
  }
  return nullptr;
}

std::string few_of(const std::vector<std::string_view>& names) {
  std::vector<std::string> few(names.begin(), names.end());
  if (few.size() > kMostNames) {
    few.resize(kMostNames);
    few.push_back(fmt::format("{} others", names.size() - kMostNames));
  }
  const std::string last = few.back();
  few.pop_back();
  return few.empty() ? last : fmt::format("{} and {}", joined(few, ", "), last);
}

std::string accept(const Setting& setting, Value& value) {
  if (!convert(setting, value)) {
    return fmt::format("must be {}, is {}", to_string(setting.type), to_toml(value));
  }
  if (const auto* integer = std::get_if<int64_t>(&value)) {
    if (*integer > setting.largest) {
      return fmt::format("must be at most {}, is {}", setting.largest, *integer);
    }
    return range_problem(setting, double(*integer), value);
  }
  if (const auto* number = std::get_if<double>(&value)) {
    return range_problem(setting, *number, value);
  }
  if (const auto* numbers = std::get_if<std::vector<double>>(&value)) {
    for (const double each : *numbers)
      if (std::string problem = range_problem(setting, each, Value(each)); !problem.empty())
        return problem;
  }
  if (const auto* word = std::get_if<std::string>(&value)) {
    if (const auto ours = find_word(setting.check.words, *word)) value = std::string(*ours);
    return word_problem(setting.check, std::get<std::string>(value));
  }
  return "";
}

Value parse_text(const Setting& setting, const std::string& text) {
  const bool quoted = text.starts_with('"') || text.starts_with('\'') || text.starts_with('[');
  const bool words = setting.type == SettingType::kText || setting.type == SettingType::kTextList;
  const bool bare_list = setting.type == SettingType::kNumberList && !quoted;
  if (quoted || !words)
    return parse_toml_value(bare_list ? "[" + text + "]" : text).value_or(Value(text));
  if (setting.type == SettingType::kTextList) return split_at_commas(text);
  return text;
}

std::string to_string(const Check& check) {
  if (!check.words.empty()) return fmt::format("one of: {}", joined(check.words, ", "));
  const bool has_low = std::isfinite(check.low);
  const bool has_high = std::isfinite(check.high);
  if (!has_low && !has_high) return "";
  if (!has_high && check.low_is_open && check.low == 0) return "positive";
  if (!has_high) return fmt::format("{} {}", check.low_is_open ? "above" : "at least", check.low);
  if (!has_low) return fmt::format("{} {}", check.high_is_open ? "below" : "at most", check.high);
  if (!check.low_is_open && !check.high_is_open) {
    return fmt::format("from {} to {}", check.low, check.high);
  }
  return fmt::format("{} {} and {} {}", check.low_is_open ? "above" : "at least", check.low,
                     check.high_is_open ? "below" : "at most", check.high);
}

std::vector<std::string_view> transport_names() {
  return {
      "auto",
#define GXP_TRANSPORT(name, ...) #name,
#include "lib/config/transports.inc"
#undef GXP_TRANSPORT
  };
}

std::vector<std::string_view> engine_names() {
  return {
      "auto",
#define GXP_ENGINE(name, ...) #name,
#include "lib/config/engines.inc"
#undef GXP_ENGINE
  };
}

std::vector<std::string_view> lr_schedule_names() {
  return {
#define GXP_LR_SCHEDULE(name, ...) #name,
#include "lib/config/lr_schedules.inc"
#undef GXP_LR_SCHEDULE
  };
}

std::string_view lr_schedules_in_words() {
  return "Shape after the warm-up."
#define GXP_LR_SCHEDULE(name, shape, rate) " " #name ": " shape "."
#include "lib/config/lr_schedules.inc"
#undef GXP_LR_SCHEDULE
      ;
}

std::vector<std::string_view> codec_names() {
  return {
      "none",
#define GXP_CODEC(name, ...) #name,
#include "lib/config/codecs.inc"
#undef GXP_CODEC
  };
}

}  // namespace gxp
