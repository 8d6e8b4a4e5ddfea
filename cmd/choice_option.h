// Options whose value is the name of an enumerator.
#pragma once

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lib/base/enum_names.h"
#include "lib/base/text/joined.h"
#include "lib/base/text/near_match.h"
#include "lib/base/text/word_aliases.h"

namespace gxp {

template <class Enum, size_t kCount>
Enum parse_choice(const char* option, const std::array<std::string_view, kCount>& names,
                  const std::string& text) {
  const std::optional<std::string_view> word = find_word(names, text);
  const auto found = word ? find_enumerator<Enum>(names, *word) : std::optional<Enum>();
  if (!found)
    throw CLI::ValidationError(
        option,
        fmt::format("must be one of: {}; it is '{}'{}", joined(names, ", "), text,
                    did_you_mean(text, std::vector<std::string>(names.begin(), names.end()))));
  return *found;
}

// `names` are the enumerators' in their order. They and `value` must live until the command's
// action ends. `value` stays empty unless the option is given.
template <class Enum, size_t kCount>
CLI::Option* add_choice_option(CLI::App& app, const char* option, std::optional<Enum>& value,
                               const std::array<std::string_view, kCount>& names,
                               const char* description) {
  const auto parse = [&value, &names, option](const std::string& text) {
    value = parse_choice<Enum>(option, names, text);
  };
  return app.add_option_function<std::string>(option, parse, description)
      ->type_name(joined(names, "|"));
}

// The default is `value`.
template <class Enum, size_t kCount>
CLI::Option* add_choice_option(CLI::App& app, const char* option, Enum& value,
                               const std::array<std::string_view, kCount>& names,
                               const char* description) {
  const auto parse = [&value, &names, option](const std::string& text) {
    value = parse_choice<Enum>(option, names, text);
  };
  return app.add_option_function<std::string>(option, parse, description)
      ->type_name(joined(names, "|"))
      ->default_str(std::string(names[size_t(value)]));
}

}  // namespace gxp
