// How a file stores a token.
#pragma once

namespace gxp {

// A little-endian integer.
struct TokenType {
  unsigned bytes = 1;
  bool is_signed = false;
};

}  // namespace gxp
