#include "lib/ckpt/named_tensors.h"
#include "lib/base/text/joined.h"

#include <sodium.h>

#include <algorithm>
#include <array>

namespace gxp {
namespace {

struct DTypeRow {
  std::string_view name;
  size_t bytes;
};

// In the order of StorageDType.
constexpr std::array kDTypes = {
    DTypeRow{"U64", 8},         DTypeRow{"I64", 8},     DTypeRow{"F64", 8},
    DTypeRow{"C64", 8},         DTypeRow{"F32", 4},     DTypeRow{"U32", 4},
    DTypeRow{"I32", 4},         DTypeRow{"BF16", 2},    DTypeRow{"F16", 2},
    DTypeRow{"U16", 2},         DTypeRow{"I16", 2},     DTypeRow{"F8_E5M2FNUZ", 1},
    DTypeRow{"F8_E4M3FNUZ", 1}, DTypeRow{"F8_E8M0", 1}, DTypeRow{"F8_E4M3", 1},
    DTypeRow{"F8_E5M2", 1},     DTypeRow{"I8", 1},      DTypeRow{"U8", 1},
    DTypeRow{"BOOL", 1}};

constexpr std::array<std::string_view, 9> kRoles = {
    "weight",       "adam_m",        "adam_v",        "momentum",      "row_means",
    "column_means", "adam_m_scales", "adam_v_scales", "codec_residual"};

}  // namespace

size_t size_of(StorageDType dtype) { return kDTypes[size_t(dtype)].bytes; }
std::string_view to_string(StorageDType dtype) { return kDTypes[size_t(dtype)].name; }

std::optional<StorageDType> parse_storage_dtype(std::string_view name) {
  const auto found = std::ranges::find(kDTypes, name, &DTypeRow::name);
  if (found == kDTypes.end()) return std::nullopt;
  return StorageDType(found - kDTypes.begin());
}

std::string_view to_string(Role role) { return kRoles[static_cast<size_t>(role)]; }

std::optional<Role> parse_role(std::string_view name) {
  const auto found = std::find(kRoles.begin(), kRoles.end(), name);
  if (found == kRoles.end()) return std::nullopt;
  return static_cast<Role>(found - kRoles.begin());
}

std::optional<uint64_t> checked_count(const std::vector<uint64_t>& shape) {
  uint64_t count = 1;
  bool overflow = false;
  for (const uint64_t size : shape) {
    if (size == 0) return 0;
    overflow |= __builtin_mul_overflow(count, size, &count);
  }
  return overflow ? std::nullopt : std::optional(count);
}

std::optional<std::string> find_value(const KeyValues& pairs, std::string_view key) {
  for (const auto& [name, value] : pairs) {
    if (name == key) return value;
  }
  return std::nullopt;
}

const NamedTensor* find_tensor(const NamedTensors& tensors, std::string_view name, Role role) {
  for (const NamedTensor& tensor : tensors.tensors) {
    if (tensor.info.name == name && tensor.info.role == role) return &tensor;
  }
  return nullptr;
}

const NamedTensor& require_weight(const NamedTensors& tensors, std::string_view name,
                                  const std::vector<uint64_t>& shape, const std::string& file) {
  const NamedTensor* tensor = find_tensor(tensors, name);
  if (tensor == nullptr) fail(ErrorKind::kCorrupt, "read {}: tensor '{}' is missing", file, name);
  if (tensor->info.shape != shape)
    fail(ErrorKind::kCorrupt, "read {}: tensor '{}' has the shape ({}), the model needs ({})", file,
         name, joined(tensor->info.shape, ", "), joined(shape, ", "));
  return *tensor;
}

void stream(const NamedTensor& tensor, const std::function<void(ConstMemory)>& sink) {
  const uint64_t bytes = tensor.info.bytes();
  const size_t element = size_of(tensor.info.dtype);
  std::vector<std::byte> buffer(std::min<uint64_t>(bytes, kStreamedBytes));
  for (uint64_t done = 0; done < bytes; done += buffer.size()) {
    buffer.resize(std::min<uint64_t>(bytes - done, kStreamedBytes));
    tensor.read(done / element, memory_of(buffer));
    sink(memory_of(std::as_const(buffer)));
  }
}

std::string sha256_hex(const NamedTensor& tensor) {
  crypto_hash_sha256_state state;
  crypto_hash_sha256_init(&state);
  stream(tensor, [&](ConstMemory block) {
    crypto_hash_sha256_update(&state, reinterpret_cast<const unsigned char*>(block.data),
                              block.bytes);
  });
  std::array<unsigned char, crypto_hash_sha256_BYTES> digest;
  crypto_hash_sha256_final(&state, digest.data());
  std::array<char, 2 * crypto_hash_sha256_BYTES + 1> hex;
  return sodium_bin2hex(hex.data(), hex.size(), digest.data(), digest.size());
}

bool are_equal(const NamedTensor& a, const NamedTensor& b) {
  return a.info.shape == b.info.shape && a.info.dtype == b.info.dtype &&
         sha256_hex(a) == sha256_hex(b);
}

}  // namespace gxp
