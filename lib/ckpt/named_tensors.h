// A checkpoint as every format presents it: named tensors whose elements are read on demand, and
// what is known about the run. Formats convert by writing what another one read.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "lib/ckpt/optimizer_record.h"
#include "lib/device/memory.h"

namespace gxp {

// Element types that files hold, a superset of what gxp computes with (DType). Bytes are copied,
// never converted. Names are safetensors' ("F32", "BF16", "F8_E4M3").
//
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

// The role of a tensor in training: a parameter, or what an optimizer keeps of the parameter with
// the same name: Adam's first or second moment, a momentum, or Adafactor's means of squares.
// Moments of 8-bit codes (U8) have scales besides, one for each block of 256 elements.
enum class Role : uint8_t {
  kWeight,
  kAdamM,
  kAdamV,
  kMomentum,
  kRowMeans,
  kColumnMeans,
  kAdamMScales,
  kAdamVScales,
  kCodecResidual
};
// "weight", "adam_m", "adam_v", "momentum", "row_means", ...
std::string_view to_string(Role role);
std::optional<Role> parse_role(std::string_view name);

// The product of the sizes, 1 for no sizes; nothing if it exceeds 2^64 - 1.
std::optional<uint64_t> checked_count(const std::vector<uint64_t>& shape);

// Row-major, little-endian. The bytes of a tensor that a reader returned fit into 64 bits.
struct TensorInfo {
  std::string name;
  Role role = Role::kWeight;
  StorageDType dtype = StorageDType::kF32;
  std::vector<uint64_t> shape;

  [[nodiscard]] uint64_t count() const { return checked_count(shape).value(); }
  [[nodiscard]] uint64_t bytes() const { return count() * size_of(dtype); }
  friend bool operator==(const TensorInfo&, const TensorInfo&) = default;
};

struct NamedTensor {
  TensorInfo info;
  // Fills `out`, a whole number of elements, with the elements from `begin` on. Holds its file
  // open. kIo, kCorrupt: the file has changed since it was opened. Threads: any.
  std::function<void(uint64_t begin, Memory out)> read;
};

// ("section.key", value as TOML writes it), as flatten() in lib/config/print.h makes them.
using KeyValues = std::vector<std::pair<std::string, std::string>>;

// The value of `key`, or nothing.
std::optional<std::string> find_value(const KeyValues& pairs, std::string_view key);

// The tokenizer that a GGUF file holds.
struct StoredTokenizer {
  std::string gguf_keys = {};  // its keys as they are encoded there; "": it holds none
  uint64_t gguf_key_count = 0;
  std::map<std::string, std::string> files = {};  // those of a Hugging Face directory, by name
};

struct NamedTensors {
  std::string format = {};  // name of the row in kFormats that read it
  std::vector<NamedTensor> tensors = {};
  // Empty where the format does not tell; for foreign ones "model.*" and "optim.*" only.
  KeyValues config = {};
  // Free pairs that the trainer keeps, and what optimizer_settings.h puts there.
  KeyValues state = {};
  // Free pairs of the file's: safetensors' __metadata__; the text of a config.json (kConfigText in
  // config_json.h).
  std::map<std::string, std::string> metadata = {};
  std::optional<uint64_t> step = {};
  std::optional<uint64_t> samples_consumed = {};
  std::optional<int> world_size = {};
  std::string strategy = {};  // "zero3"; "" where not known
  // Paths of the files beside the tensors that belong to the model: a Hugging Face directory's
  // tokenizer.json, ...
  std::vector<std::string> companions = {};
  StoredTokenizer tokenizer = {};
  OptimizerRecord optimizer = {};  // of another program
};

// The tensor with this name and role, or nullptr.
const NamedTensor* find_tensor(const NamedTensors& tensors, std::string_view name,
                               Role role = Role::kWeight);

// The weight with this name and shape. kCorrupt, naming `file`, if there is none.
const NamedTensor& require_weight(const NamedTensors& tensors, std::string_view name,
                                  const std::vector<uint64_t>& shape, const std::string& file);

// Bytes of a block in which tensors are read: a multiple of every element's size.
inline constexpr size_t kStreamedBytes = size_t{4} << 20;
// The whole tensor through a buffer of at most so many bytes, in order.
void stream(const NamedTensor& tensor, const std::function<void(ConstMemory)>& sink);

// Whether type, shape and bytes are the same. Reads both.
bool are_equal(const NamedTensor& a, const NamedTensor& b);

// SHA-256 of the tensor's bytes, 64 lower-case hexadecimal digits.
std::string sha256_hex(const NamedTensor& tensor);

}  // namespace gxp
