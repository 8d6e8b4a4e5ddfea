#include "lib/ckpt/storage_dtype.h"

#include <array>

namespace gxp {
namespace {

struct Row {
  std::string_view name;
  size_t bytes;
  std::optional<DType> computes_as = std::nullopt;
};

constexpr std::array<Row, 19> kRows = {{{"U64", 8},
                                        {"I64", 8, DType::kI64},
                                        {"F64", 8, DType::kF64},
                                        {"C64", 8},
                                        {"F32", 4, DType::kF32},
                                        {"U32", 4},
                                        {"I32", 4, DType::kI32},
                                        {"BF16", 2, DType::kBF16},
                                        {"F16", 2, DType::kF16},
                                        {"U16", 2},
                                        {"I16", 2},
                                        {"F8_E5M2FNUZ", 1},
                                        {"F8_E4M3FNUZ", 1},
                                        {"F8_E8M0", 1},
                                        {"F8_E4M3", 1},
                                        {"F8_E5M2", 1},
                                        {"I8", 1, DType::kI8},
                                        {"U8", 1, DType::kU8},
                                        {"BOOL", 1}}};

template <class Predicate>
std::optional<StorageDType> find(Predicate matches) {
  for (size_t i = 0; i < kRows.size(); ++i) {
    if (matches(kRows[i])) return static_cast<StorageDType>(i);
  }
  return std::nullopt;
}

}  // namespace

size_t size_of(StorageDType dtype) { return kRows[static_cast<size_t>(dtype)].bytes; }
std::string_view to_string(StorageDType dtype) { return kRows[static_cast<size_t>(dtype)].name; }

std::optional<StorageDType> parse_storage_dtype(std::string_view name) {
  return find([&](const Row& row) { return row.name == name; });
}

StorageDType to_storage(DType dtype) {
  return *find([&](const Row& row) { return row.computes_as == dtype; });
}

std::optional<DType> to_dtype(StorageDType dtype) {
  return kRows[static_cast<size_t>(dtype)].computes_as;
}

}  // namespace gxp
