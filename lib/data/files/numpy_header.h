// The header of a .npy file: the type and the shape of its array.
// Source: numpy, numpy/lib/_format_impl.py, format versions 1.0 to 3.0.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace gxp {

// The longest header that is read; that of an array of numbers has 128 bytes.
inline constexpr uint64_t kMaxNumpyHeader = 4096;

struct NumpyHeader {
  uint64_t bytes = 0;  // where the elements begin
  std::string type;    // "<u2"
  bool columns_first = false;
  std::vector<uint64_t> shape;
};

// `head` is the file's beginning, as much of it as there is up to kMaxNumpyHeader. kCorrupt: no
// header of an array of numbers; the message begins with `what`, "read a.npy: its header".
NumpyHeader parse_numpy_header(std::string_view head, const std::string& what);

}  // namespace gxp
