// What train.profile_steps and train.trace_steps say.
#pragma once

#include <optional>
#include <string_view>

namespace gxp {

// Steps of a run, numbered from 1, both included.
struct ProfileRange {
  int first = 0;
  int last = 0;
};

// "10-12". Nothing if the text has another form, the last comes before the first, or the first is
// 0. Pure.
std::optional<ProfileRange> parse_profile_range(std::string_view text);

}  // namespace gxp
