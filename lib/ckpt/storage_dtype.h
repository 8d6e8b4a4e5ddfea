// Element types that files hold, a superset of what gxp computes with (DType). Bytes are copied,
// never converted. Names are safetensors' ("F32", "BF16", "F8_E4M3").
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace gxp {

// In the order in which safetensors' own writer puts tensors into a file: falling alignment.
// Source: huggingface/safetensors 0.8, safetensors/src/tensor.rs (its enum, from the end).
enum class StorageDType : uint8_t {
  kU64,
  kI64,
  kF64,
  kC64,
  kF32,
  kU32,
  kI32,
  kBF16,
  kF16,
  kU16,
  kI16,
  kF8E5M2Fnuz,
  kF8E4M3Fnuz,
  kF8E8M0,
  kF8E4M3,
  kF8E5M2,
  kI8,
  kU8,
  kBool,
};

size_t size_of(StorageDType dtype);              // bytes of one element
std::string_view to_string(StorageDType dtype);  // "F32"
// By safetensors' name. Types of less than a byte (F4, F6_*) are not among them.
std::optional<StorageDType> parse_storage_dtype(std::string_view name);

}  // namespace gxp
