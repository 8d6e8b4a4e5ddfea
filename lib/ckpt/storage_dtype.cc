#include "lib/ckpt/storage_dtype.h"

#include <algorithm>
#include <array>

namespace gxp {
namespace {

struct Row {
  std::string_view name;
  size_t bytes;
};

constexpr std::array kRows = {
    Row{"U64", 8},         Row{"I64", 8},     Row{"F64", 8},     Row{"C64", 8},
    Row{"F32", 4},         Row{"U32", 4},     Row{"I32", 4},     Row{"BF16", 2},
    Row{"F16", 2},         Row{"U16", 2},     Row{"I16", 2},     Row{"F8_E5M2FNUZ", 1},
    Row{"F8_E4M3FNUZ", 1}, Row{"F8_E8M0", 1}, Row{"F8_E4M3", 1}, Row{"F8_E5M2", 1},
    Row{"I8", 1},          Row{"U8", 1},      Row{"BOOL", 1}};

}  // namespace

size_t size_of(StorageDType dtype) { return kRows[size_t(dtype)].bytes; }
std::string_view to_string(StorageDType dtype) { return kRows[size_t(dtype)].name; }

std::optional<StorageDType> parse_storage_dtype(std::string_view name) {
  const auto found = std::ranges::find(kRows, name, &Row::name);
  if (found == kRows.end()) return std::nullopt;
  return StorageDType(found - kRows.begin());
}

}  // namespace gxp
