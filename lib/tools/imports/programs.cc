#include "lib/tools/imports/programs.h"

#include <algorithm>
#include <array>

#include "lib/base/error.h"
#include "lib/base/find_row.h"

namespace gxp {
namespace {

constexpr std::array kPrograms = {
    SourceProgram{SourceKind::kDeepSpeed, deepspeed::rules, deepspeed::judge},
    SourceProgram{SourceKind::kAccelerate, accelerate::rules, accelerate::judge},
    SourceProgram{SourceKind::kTorchtitan, torchtitan::rules, torchtitan::judge},
    SourceProgram{SourceKind::kTrainer, trainer::rules, trainer::judge},
    SourceProgram{SourceKind::kLlmc, llmc::rules, llmc::judge},
};

}  // namespace

std::span<const SourceProgram> source_programs() { return kPrograms; }

ImportResult import_file(const ImportRequest& request) {
  for (const auto& [name, value] : request.arguments) {
    const std::vector<std::string> known = import_arguments();
    if (std::ranges::find(known, name) == known.end())
      fail_unknown(ErrorKind::kConfig, "--import-arg", name, known);
  }
  ImportedFile file = read_source(request.path);
  const std::vector<std::string> flaws = file.flaws;
  const std::optional<SourceKind> kind = file.kind;
  const bool is_read = kind && (flaws.empty() || !file.keys.empty());
  Importing in(request, std::move(file));
  for (const std::string& flaw : flaws) in.error(flaw);
  if (is_read) source_programs()[size_t(*kind)].judge(in);
  return std::move(in).take();
}

}  // namespace gxp
