// The whole of a small text file.
#pragma once

#include <string>

namespace gxp {

// kIo: not readable; kCorrupt: more than `limit` bytes.
std::string read_text_file(const std::string& path, size_t limit);

}  // namespace gxp
