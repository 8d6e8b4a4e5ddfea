#include "lib/base/text/utf8.h"

namespace gxp {

size_t utf8_length(std::string_view text) {
  const auto is_within = [text](size_t at, unsigned low, unsigned high) {
    const unsigned byte = at < text.size() ? static_cast<unsigned char>(text[at]) : 0;
    return byte >= low && byte <= high;
  };
  if (is_within(0, 0, 0x7f)) return 1;
  const size_t length = is_within(0, 0xc2, 0xdf)   ? 2
                        : is_within(0, 0xe0, 0xef) ? 3
                        : is_within(0, 0xf0, 0xf4) ? 4
                                                   : 0;
  const unsigned low = text.starts_with('\xe0') ? 0xa0 : text.starts_with('\xf0') ? 0x90 : 0x80;
  const unsigned high = text.starts_with('\xed') ? 0x9f : text.starts_with('\xf4') ? 0x8f : 0xbf;
  if (length == 0 || !is_within(1, low, high)) return 0;
  for (size_t at = 2; at < length; ++at) {
    if (!is_within(at, 0x80, 0xbf)) return 0;
  }
  return length;
}

}  // namespace gxp
