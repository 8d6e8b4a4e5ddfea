// gxp topo matrix: the path type between any two GPUs and NICs, nvidia-smi's or NCCL's.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <array>
#include <memory>

#include "cmd/choice_option.h"
#include "cmd/exit_codes.h"
#include "cmd/options.h"
#include "cmd/result_file.h"
#include "cmd/topo/nccl.h"
#include "cmd/topo/topo.h"
#include "lib/base/error.h"
#include "lib/base/log.h"
#include "lib/report/report.h"
#include "lib/tools/topology/view/device_matrix.h"
#include "lib/topo/model/host_tree.h"

namespace gxp {
namespace {

enum class Words { kSmi, kNccl, kNcclUsed };
constexpr std::array<std::string_view, 3> kWords = {"smi", "nccl", "nccl-used"};

struct MatrixOptions {
  std::string from = "live";
  std::vector<std::string> nccl;
  Words words = Words::kSmi;
  Format format = Format::kText;
};

struct Matrices {
  DeviceMatrix smi, wired, used;
};

Matrices matrices_of(const NcclHost& nccl) {
  return {smi_matrix(nccl.host), nccl_matrix(nccl.paths, nccl.routes, NcclView::kWired),
          nccl_matrix(nccl.paths, nccl.routes, NcclView::kUsed)};
}

// nvidia-smi's form alone, for what reads that; what it cannot say goes to the log.
void print_smi(const NcclHost& nccl, const DeviceMatrix& smi) {
  for (const std::string& note : smi.notes) log_info("topo: {}", note);
  write_stdout(matrix_text(nccl.host, smi, smi_legend(nccl.host)));
}

void print_nccl(const NcclHost& nccl, const DeviceMatrix& smi, const DeviceMatrix& matrix) {
  std::string text = matrix_text(nccl.host, matrix, nccl_legend());
  const auto differences = compare(smi, matrix, nccl.paths, nccl.routes);
  if (!differences.empty()) text += "\nWhere nvidia-smi says otherwise:\n\n";
  for (const MatrixDifference& one : differences)
    text += fmt::format("  {}, nvidia-smi {}: {}\n      {}\n", one.nccl, one.smi, one.why,
                        cells_text(nccl.host, smi, one));
  if (!matrix.notes.empty()) text += "\nNotes:\n\n";
  for (const std::string& note : matrix.notes) text += fmt::format("  {}\n", note);
  write_stdout(text);
}

void print_report(const NcclHost& nccl, const Matrices& matrices, Format format) {
  Report report{.schema = "gxp.topo/1"};
  const std::vector<std::string> names = names_of_parts(nccl.host);
  const std::vector<PartId> devices = matrices.smi.devices();
  Table& cells = report.add_table("cells", {{"from"}, {"to"}, {"smi"}, {"nccl"}, {"nccl_used"}});
  for (size_t row = 0; row < devices.size(); ++row) {
    for (size_t column = 0; column < devices.size(); ++column)
      cells.add_row(names[devices[row]], names[devices[column]], matrices.smi.cells[row][column],
                    matrices.wired.cells[row][column], matrices.used.cells[row][column]);
  }
  Table& table = report.add_table("differences", {{"smi"}, {"nccl"}, {"why"}, {"cells"}});
  for (const MatrixDifference& one : compare(matrices.smi, matrices.used, nccl.paths, nccl.routes))
    table.add_row(one.smi, one.nccl, one.why, one.cells.size());
  print(report, format);
}

int run(const MatrixOptions& options) {
  const NcclHost nccl(options.from, options.nccl);
  const bool asks_nccl = options.words != Words::kSmi || options.format != Format::kText;
  if (!nccl.host.places_known && asks_nccl)
    fail(ErrorKind::kConfig,
         "show NCCL's paths in {}: {} does not describe how GPUs are connected; use nvidia-smi "
         "topo -m",
         nccl.host.name, nccl.host.source);
  const Matrices matrices = matrices_of(nccl);
  if (options.format != Format::kText) {
    print_report(nccl, matrices, options.format);
  } else if (options.words == Words::kSmi) {
    print_smi(nccl, matrices.smi);
  } else {
    print_nccl(nccl, matrices.smi, options.words == Words::kNccl ? matrices.wired : matrices.used);
  }
  return kExitOk;
}

}  // namespace

int print_smi_matrix(const std::string& from) {
  MatrixOptions options;
  options.from = from;
  return run(options);
}

std::function<int()> define_topo_matrix(CLI::App& app) {
  auto options = std::make_shared<MatrixOptions>();  // kept alive by the returned action
  add_from_option(app, options->from);
  add_choice_option(app, "--like", options->words, kWords,
                    "Path types: nvidia-smi's; NCCL's by wiring; NCCL's by the routes it uses. "
                    "NCCL's are followed by the cells where nvidia-smi differs, and why");
  add_nccl_option(app, options->nccl);
  add_format_option(app, options->format);
  return [options] { return run(*options); };
}

}  // namespace gxp
