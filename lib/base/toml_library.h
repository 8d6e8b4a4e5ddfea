// toml++, which is to be included through this header alone, in .cc files: it takes seconds to
// compile. Some assertions of 3.3 fail on text that is no TOML ("x = [0,\n}"); here they throw.
#pragma once

#include <string>
#include <string_view>

#include "lib/base/error.h"
#include "lib/base/text/toml_text.h"

namespace gxp {

// Thrown by toml::parse() in addition to toml::parse_error; it does not say where.
struct TomlAssertion {};
inline constexpr std::string_view kTomlAssertion = "it is not TOML; is a list not closed?";

constexpr void require_in_toml(bool holds) {
  if (!holds) throw TomlAssertion();
}

}  // namespace gxp

#pragma push_macro("NDEBUG")  // which would take them away, and have the compiler rely on them
#undef NDEBUG
#define TOML_ASSERT(condition) ::gxp::require_in_toml(static_cast<bool>(condition))
#define TOML_ENABLE_FORMATTERS 0  // which are not used, and take long to compile
#include <toml++/toml.h>
#pragma pop_macro("NDEBUG")

namespace gxp {

// The text of the file `path`. kConfig, naming path and line: it is no TOML, or find_toml_flaw()
// finds something.
inline toml::table parse_toml_or_fail(std::string_view text, const std::string& path) {
  if (const auto flaw = find_toml_flaw(text))
    fail(ErrorKind::kConfig, "{}:{}: {}", path, flaw->line, flaw->what);
  try {
    return toml::parse(text);
  } catch (const toml::parse_error& error) {
    fail(ErrorKind::kConfig, "{}:{}: {}", path, error.source().begin.line, error.description());
  } catch (const TomlAssertion&) {
    fail(ErrorKind::kConfig, "{}:1: {}", path, kTomlAssertion);
  }
}

}  // namespace gxp
