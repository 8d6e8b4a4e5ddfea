// The rows of a program's table of keys. One more key is one row.
#pragma once

#include <string_view>

#include "lib/tools/imports/importing.h"

namespace gxp {

// `key` is a name, or the beginning of names with a '*', such as "block.*"; the longest one that fits
// counts. apply() gives the verdict on the key that `in` judges.
struct KeyRule {
  std::string_view key;
  void (*apply)(Importing& in, const KeyRule& rule);
  std::string_view setting = "";
  std::string_view note = "";
};

// Reasons that many rows give.
inline constexpr std::string_view kLogging = "logging of another program";
inline constexpr std::string_view kMeaningless = "no meaning in gxp";
inline constexpr std::string_view kAlways = "gxp always does so";
inline constexpr std::string_view kOldSpelling = "an older spelling";
inline constexpr std::string_view kNoCompiler = "no Python to compile";

// What most keys need.
namespace act {

void take(Importing& in, const KeyRule& rule);          // the value, as it is
void take_changed(Importing& in, const KeyRule& rule);  // likewise; the note says what differs
void ignore(Importing& in, const KeyRule& rule);        // has no effect here, whatever its value
void refuse(Importing& in, const KeyRule& rule);
void refuse_unknown(Importing& in, const KeyRule& rule);     // with the nearest known name
void refuse_unless_off(Importing& in, const KeyRule& rule);  // false, 0, none, empty
void refuse_unless_one(Importing& in, const KeyRule& rule);  // a degree, a size
// "block.enabled" and the block's other keys: nothing if it is off.
void refuse_block(Importing& in, const KeyRule& rule);

}  // namespace act

}  // namespace gxp
