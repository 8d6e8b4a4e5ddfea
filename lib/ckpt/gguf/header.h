// The part of a GGUF file before its data: typed keys, and the tensors' names, shapes, types and
// places. Little-endian:
//
//   "GGUF"   u32 version   u64 tensors   u64 keys
//   a key:   text, u32 type, the value      text: u64 bytes, then those
//            array: u32 type of its elements, u64 count, then those; an array may hold arrays
//   a tensor: text, u32 dimensions, u64 each, the fastest first (against row-major), u32 type, u64
//            offset in the data
//   the data, from the next multiple of general.alignment (32 if there is no such key) on; each
//            tensor begins where the one before ends, rounded up to that
//
// Files are hostile until checked; the rules are those of ggml's own reader where it is stricter
// than the text: versions 2 and 3, which differ in nothing that is read here; keys of 1 to 65535
// bytes, each once; bools 0 or 1; arrays of up to 2^30 elements; names of 1 to 63 bytes without a
// NUL, each once; up to 4 dimensions; an alignment that is a power of two; tensors in the order of
// their bytes, without overlaps and holes, to the end of the file. gxp's own limits: 10^8 bytes of
// header, arrays in arrays 8 deep. Counts are compared with the bytes that are left before
// anything is kept.
// Source: ggml, docs/gguf.md and src/gguf.cpp.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "lib/ckpt/file.h"
#include "lib/ckpt/named_tensors.h"

namespace gxp {

// An array is checked, and kept if its elements are F32: `floats` are their bytes.
struct GgufArray {
  std::string floats = {};
  friend bool operator==(const GgufArray&, const GgufArray&) = default;
};

// An unsigned integer is kept as uint64_t, a signed one as int64_t.
using GgufValue = std::variant<GgufArray, bool, uint64_t, int64_t, float, double, std::string>;

// Keys as a file has them, one behind another.
struct GgufKeys {
  std::string encoded = {};
  uint64_t count = 0;
};

inline constexpr const char* kArchitectureKey = "general.architecture";
// How the names of the tokenizer's keys begin.
inline constexpr std::string_view kTokenizerKeys = "tokenizer.";

struct GgufHeader {
  std::map<std::string, GgufValue> keys;
  GgufKeys tokenizer;               // those of the tokenizer, which are among `keys`, too
  std::vector<TensorInfo> tensors;  // in the order of their bytes; row-major shapes
  std::vector<uint64_t> offsets;    // of `tensors`, in the file
};

// The value of a key; nullptr: there is no such key, or it is of another type.
template <class T>
const T* find_gguf_value(const GgufHeader& header, const std::string& key) {
  const auto found = header.keys.find(key);
  return found == header.keys.end() ? nullptr : std::get_if<T>(&found->second);
}

// Whether the file begins with "GGUF".
bool begins_like_gguf(const InputFile& file);

// kCorrupt names the file, the byte, and what is wrong; so it does for a type of tensor that gxp
// does not read (the quantized ones), with its name. Cost: reads the header once, in order; keeps
// the texts, the arrays of F32 and the tokenizer.
GgufHeader read_gguf_header(const InputFile& file);

// kConfig: GGUF cannot store the tensor, because of its type, name or dimensions.
void check_gguf_tensor(const TensorInfo& info);

// A key to write: its value's C++ type is that in the file.
using GgufKey =
    std::pair<std::string, std::variant<uint32_t, float, bool, std::string, std::vector<int32_t>,
                                        std::vector<float>, std::vector<std::string>>>;
std::string encode_gguf_keys(const std::vector<GgufKey>& keys);

// The bytes before the data of these tensors, which check_gguf_tensor() accepts. kConfig: too many.
std::string make_gguf_header(const GgufKeys& keys, const std::vector<NamedTensor>& tensors);

// Zeros from `bytes` on to where the next tensor begins in what gxp writes.
std::string gguf_padding(uint64_t bytes);

}  // namespace gxp
