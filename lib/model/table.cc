#include <array>
#include <string_view>

#include "lib/base/error.h"
#include "lib/model/gpt2.h"
#include "lib/model/llama.h"
#include "lib/model/model.h"

namespace gxp {
namespace {

struct Family {
  std::string_view name;
  std::unique_ptr<Model> (*make)(const Architecture&, Ops&);
};

constexpr std::array kFamilies = {Family{"gpt2", gpt2::make_gpt2_model},
                                  Family{"llama", llama::make_llama_model}};

}  // namespace

std::unique_ptr<Model> make_model(const Architecture& architecture, Ops& ops) {
  for (const Family& family : kFamilies) {
    if (family.name == architecture.config.family) return family.make(architecture, ops);
  }
  fail(ErrorKind::kConfig, "model.family: '{}' is unknown; use gpt2 or llama",
       architecture.config.family);
}

}  // namespace gxp
