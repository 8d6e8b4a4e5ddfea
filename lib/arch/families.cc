#include <fmt/ranges.h>

#include <algorithm>

#include "lib/arch/family.h"
#include "lib/arch/gpt2.h"
#include "lib/arch/llama.h"
#include "lib/base/error.h"
#include "lib/base/find_row.h"

namespace gxp {

const std::vector<Family>& families() {
  static const std::vector<Family> kFamilies = {
      gpt2::family(),
      llama::family(),
  };
  return kFamilies;
}

bool Family::has(std::string_view key) const { return std::ranges::find(keys, key) != keys.end(); }

std::vector<std::string_view> family_names() { return row_names(families()); }

std::string families_in_words() { return fmt::format("{}", fmt::join(family_names(), " or ")); }

std::vector<std::string_view> families_with(std::string_view key) {
  return rows_with(families(), key);
}

const Family& find_family(std::string_view name) {
  const auto found = std::ranges::find(families(), name, &Family::name);
  if (found != families().end()) return *found;
  fail(ErrorKind::kConfig, "model.family: '{}' is unknown; use {}", name, families_in_words());
}

int64_t ModelConfig::mlp_width() const { return find_family(family).mlp_width(*this); }

Architecture make_architecture(const ModelConfig& config, DType compute) {
  return find_family(config.family).make(config, compute);
}

}  // namespace gxp
