// A file in memory, for readers that open one.
#pragma once

#include <string>

namespace gxp {

// The path of one file with these bytes; the next call changes its content.
std::string path_of_bytes(const std::string& bytes);

}  // namespace gxp
