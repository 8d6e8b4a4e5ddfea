// The numbers of a GGUF file's header that its reader and its writer share; only the .cc files of
// this folder include it.
// Source: ggml, docs/gguf.md, src/gguf.cpp and include/ggml.h.
#pragma once

#include <cstdint>
#include <string_view>

#include "lib/ckpt/named_tensors.h"

namespace gxp {

inline constexpr std::string_view kGgufMagic = "GGUF";
inline constexpr uint32_t kGgufVersion = 3;
inline constexpr uint64_t kGgufAlignment = 32;
inline constexpr uint64_t kMaxGgufHeaderBytes = 100'000'000;
inline constexpr uint64_t kMaxGgufNameBytes = 63;
inline constexpr uint32_t kMaxGgufDimensions = 4;

// Of values, as the file numbers them.
enum class GgufType : uint32_t {
  kU8,
  kI8,
  kU16,
  kI16,
  kU32,
  kI32,
  kF32,
  kBool,
  kText,
  kArray,
  kU64,
  kI64,
  kF64
};

// Of elements.
struct GgmlType {
  uint32_t id;
  StorageDType dtype;
};
inline constexpr GgmlType kGgmlTypes[] = {{0, StorageDType::kF32},  {1, StorageDType::kF16},
                                          {24, StorageDType::kI8},  {25, StorageDType::kI16},
                                          {26, StorageDType::kI32}, {27, StorageDType::kI64},
                                          {28, StorageDType::kF64}, {30, StorageDType::kBF16}};

}  // namespace gxp
