// The parts of its source's text that a host keeps: locations, and attributes for which gxp has no
// field.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace gxp {

// A place in the source, from 1; 0: the source is no text.
struct SourceLocation {
  int line = 0;
  int column = 0;
};

// "NAME:LINE:COLUMN"; NAME where the place is no text.
inline std::string at_place(std::string_view name, SourceLocation place) {
  std::string text(name);
  for (const int number : {place.line, place.column})
    if (place.line != 0) text += ":" + std::to_string(number);
  return text;
}

using Attributes = std::vector<std::pair<std::string, std::string>>;

}  // namespace gxp
