// Finds text that toml++ must not be given, before it parses.
//
// toml++ 3.3 ends the process where what follows "[" or "[[" at the beginning of a line cannot
// begin a key, and does what C++ leaves undefined where a key has letters beyond ASCII. A key of
// many parts (a.b.c) is as many tables, one in the other, and their destructors use up the stack;
// the nesting of lists and inline tables toml++ itself limits, to 256. All three are found line by
// line; so that a line can be judged alone, strings of several lines are refused, too. Lists of
// several lines are allowed, unless one of their lines begins with such a bracket.
#pragma once

#include <optional>
#include <string_view>

namespace gxp {

struct TomlFlaw {
  int line = 0;  // from 1
  std::string_view what{};
};

// The first one, or none.
std::optional<TomlFlaw> find_toml_flaw(std::string_view text);

}  // namespace gxp
