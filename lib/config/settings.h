// Every setting of a RunConfig as a row of one list: what the loader, the printer, the man page and
// the completion work on. Derived from the schemas in run_config.h.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "lib/base/schema.h"
#include "lib/config/run_config.h"
#include "lib/config/toml_reader.h"

namespace gxp {

enum class SettingType { kBool, kInteger, kBytes, kNumber, kText, kTextList, kNumberList };

// "a number"; for messages and the man page.
std::string_view to_string(SettingType type);

struct Setting {
  std::string section;  // "optim"
  std::string key;      // "lr"
  std::string doc;
  SettingType type;
  Check check;
  int64_t largest;  // kInteger, kBytes: the largest value that the member holds
  std::function<Value(const RunConfig&)> get = {};
  // Only for what accept() has returned.
  std::function<void(RunConfig&, const Value&)> set = {};
  // Whether the value is the one that `run` would have if nobody had set it.
  std::function<bool(const RunConfig& run)> is_default = {};
  bool default_varies = false;  // with another setting (schema.h)
  // If not all families, or optimizers, have the setting: those that do, those that do not, and the
  // setting that names one, "model.family".
  std::vector<std::string_view> owners = {};
  std::vector<std::string_view> others = {};
  std::string_view named_by = {};
  OptionForm option = {};

  [[nodiscard]] std::string name() const { return section + "." + key; }  // "optim.lr"
};

struct SectionInfo {
  std::string name;
  std::string_view doc;
};

// In the order of declaration. Built at the first call; callable from any thread.
const std::vector<Setting>& settings();
const std::vector<SectionInfo>& sections();
std::vector<std::string> section_names();
std::vector<std::string> keys_of(std::string_view section);

// At most so many owners of a setting are named.
inline constexpr size_t kMostNames = 3;
// "adamw, adam and lion", or the first few "and 4 others".
std::string few_of(const std::vector<std::string_view>& names);

// Nothing if there is no such setting.
const Setting* find_setting(std::string_view section, std::string_view key);

// Turns `value` into the alternative that `set` takes (an integer into a number, "25MiB" into bytes,
// "bfloat16" into "bf16") and checks it. Returns "" or what is wrong: "must be positive, is -1".
std::string accept(const Setting& setting, Value& value);

// A value from the command line or the environment: as in TOML, but strings need no quotes, and a list
// may be written a,b,c. What cannot be read as the setting's type stays a string, which accept() then
// refuses with the right words.
Value parse_text(const Setting& setting, const std::string& text);

// The check in words: "positive", "from 0 to 1", "one of: auto, cpu"; "" if anything goes.
std::string to_string(const Check& check);

}  // namespace gxp
