#include <algorithm>
#include <array>
#include <string_view>

#include "lib/arch/family.h"
#include "lib/base/error.h"
#include "lib/model/model.h"

namespace gxp {

using MakeModel = std::unique_ptr<Model>(const Architecture&, Ops&);
MakeModel make_gpt2_model;
MakeModel make_llama_model;

namespace {

struct Row {
  std::string_view family;
  MakeModel* make;
};

constexpr std::array kRows = {
    Row{"gpt2", make_gpt2_model},
    Row{"llama", make_llama_model},
};

}  // namespace

std::unique_ptr<Model> make_model(const Architecture& architecture, Ops& ops) {
  const auto* const row = std::ranges::find(kRows, architecture.config.family, &Row::family);
  if (row != kRows.end()) return row->make(architecture, ops);
  fail(ErrorKind::kConfig, "model.family: '{}' is unknown; use {}", architecture.config.family,
       families_in_words());
}

}  // namespace gxp
