// Identifies a conversion.
#pragma once

#include <string>

#include "cmd/convert_ckpt/options.h"

namespace gxp {

// The same for the same source, while none of its files changes (place, size, time), and the same
// options, whose files are then the same. 32 hexadecimal digits. kIo.
std::string conversion_id(const ConvertOptions& options);

}  // namespace gxp
