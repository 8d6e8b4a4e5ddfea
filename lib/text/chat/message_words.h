// The words of a message, which are its content: a text, or a list of parts that are texts.
#pragma once

#include <array>
#include <string_view>

#include "lib/text/jinja/value.h"

namespace gxp {

// The names of a message's reasoning, of which a template sees all.
inline constexpr std::array<const char*, 3> kReasoningNames = {"reasoning_content", "thinking",
                                                               "reasoning"};

// Whether it has any that are more than white space.
bool has_words(const JinjaDict& message);
// Whether `text` has all of them as they are, without the white space at their ends.
bool has_words_of(std::string_view text, const JinjaDict& message);
// The message with `words` in each place; it has words.
JinjaDict with_words(const JinjaDict& message, std::string_view words);
// Also as its reasoning, if it has one; a message without words gets none.
JinjaDict with_reasoning_and_words(const JinjaDict& message, std::string_view words);

}  // namespace gxp
