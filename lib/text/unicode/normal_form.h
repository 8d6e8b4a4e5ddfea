// Unicode's normal forms and lower case, as the tokenizers library computes them: its tables of
// normal forms are of about Unicode 10, those of lower case of Unicode 17.
#pragma once

#include <string_view>

#include "lib/text/unicode/text_view.h"

namespace gxp {

enum class NormalForm { kNfc, kNfd, kNfkc, kNfkd };

// The text in that form (Unicode Standard Annex 15). Code points that are newer than the library's
// tables (kFixedForm) stay as they are and in their place, whatever utf8proc's version. What one
// sequence of characters becomes comes from all of that sequence. Cost: n log n.
void append_normal_form(NormalForm form, TextView text, TextBuilder& out);

// Each character alone: a final sigma becomes the ordinary one.
void append_lower_case(TextView text, TextBuilder& out);

}  // namespace gxp
