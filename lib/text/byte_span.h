// A range of a text's bytes.
#pragma once

#include <cstdint>

namespace gxp {

struct ByteSpan {
  uint32_t begin = 0, end = 0;
  bool operator==(const ByteSpan&) const = default;
};

}  // namespace gxp
