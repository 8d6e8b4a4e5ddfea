// Stands for all commands but train, and for train's --import and --export, in builds without tools
// (GXP_TOOLS=OFF).
#include <CLI/CLI.hpp>
#include <functional>
#include <string>

#include "cmd/exchange_options.h"
#include "cmd/manual.h"
#include "lib/base/error.h"

namespace gxp {
namespace {

// Takes any options, and says why it does nothing with them.
std::function<int()> define_absent(CLI::App& app) {
  app.allow_extras();
  return [name = app.get_name()]() -> int {
    fail(ErrorKind::kUnavailable,
         "run gxp {}: this build has only train; configure with -DGXP_TOOLS=ON", name);
  };
}

}  // namespace

std::function<int()> define_allreduce_test(CLI::App& app) { return define_absent(app); }
std::function<int()> define_convert_ckpt(CLI::App& app) { return define_absent(app); }
std::function<int()> define_memcalc(CLI::App& app) { return define_absent(app); }
std::function<int()> define_shard_plan(CLI::App& app) { return define_absent(app); }
std::function<int()> define_topo(CLI::App& app) { return define_absent(app); }

int exchange(const TrainOptions&) {
  fail(ErrorKind::kUnavailable,
       "gxp train --import and --export: this build lacks them; configure with -DGXP_TOOLS=ON");
}

std::string topology_sources_manual() { return ""; }

}  // namespace gxp
