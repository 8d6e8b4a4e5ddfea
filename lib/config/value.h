// The value of one setting, whatever wrote it: a TOML file, --set or the environment.
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

namespace gxp {

using Value = std::variant<bool, int64_t, double, std::string, std::vector<std::string>>;

// As TOML writes it: true, 25, 0.5, "text", ["a", "b"]. A double keeps every bit and never looks
// like an integer; strings are escaped, so that the text reads back to the same value.
std::string to_toml(const Value& value);

}  // namespace gxp
