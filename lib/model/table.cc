#include <array>
#include <string_view>

#include "lib/base/find_row.h"
#include "lib/model/model.h"

namespace gxp {

using MakeModel = std::unique_ptr<Model>(const Architecture&, Ops&);
MakeModel make_gpt2_model;
MakeModel make_llama_model;

namespace {

struct Row {
  std::string_view name;  // of the family
  MakeModel* make;
};

constexpr std::array kRows = {
    Row{"gpt2", make_gpt2_model},
    Row{"llama", make_llama_model},
};

}  // namespace

std::unique_ptr<Model> make_model(const Architecture& architecture, Ops& ops) {
  return find_row(kRows, architecture.config.family, "model.family", ErrorKind::kConfig)
      .make(architecture, ops);
}

}  // namespace gxp
