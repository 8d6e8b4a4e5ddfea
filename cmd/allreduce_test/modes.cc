// The options of `gxp allreduce-test` that ask for something else than a measurement of operations.

#include <CLI/CLI.hpp>
#include <array>
#include <string_view>
#include <utility>

#include "cmd/allreduce_test/options.h"
#include "cmd/choice_option.h"
#include "cmd/options.h"
#include "lib/base/error.h"
#include "lib/tools/topology/model/cluster.h"

namespace gxp {
namespace {

constexpr std::array<std::string_view, 2> kRankOrders = {"given", "planned"};

void add_explain(CLI::App& app, AllreduceOptions& options) {
  app.add_flag("--explain", options.explain,
               "Print each size's algorithm, its reason and its steps; start no ranks");
  app.add_option("--svg", options.svg, "With --explain: draw the steps into FILE")
      ->type_name("FILE");
}

void add_calibrate(CLI::App& app, AllreduceOptions& options) {
  app.add_option_function<std::string>(
         "--calibrate",
         [&options](const std::string& file) { options.calibrate = file == "true" ? "" : file; },
         "Measure the cost model's constants, up to --maxbytes. They hold for this number of ranks "
         "and this transport. They are written to FILE; without FILE to the profile that "
         "allreduce-test and train read by default: $GXP_PROFILE, otherwise "
         "~/.cache/gxp/profile.toml")
      ->expected(0, 1)  // and so no default_str(), which CLI11 would take for a missing FILE
      ->type_name("FILE");
}

void add_simulate(CLI::App& app, AllreduceOptions& options) {
  app.add_option("--simulate", options.simulate,
                 "Predict times on a cluster described by FILE; start no ranks. profile: on "
                 "--nproc x --nnodes ranks over --transport, as --calibrate measured it")
      ->type_name("FILE|profile");
  add_under(app, "With --simulate", [&] {
    add_number_option(app, "--ranks", options.ranks, 1, int(Cluster::kMaxGpus),
                      "Number of ranks, on the first GPUs")
        ->default_str("one on each GPU");
    add_choice_option(
        app, "--rank-order", options.rank_order, kRankOrders,
        "Order of ranks: as the file lists the hosts, or with neighbours close to each "
        "other in the network");
    add_choice_option(
        app, "--channel-order", options.channel_order, kRankOrders,
        "Rings and groups: rings in rank order and one group per host, or those of gxp "
        "topo plan");
    app.add_option("--trace", options.trace,
                   "Write the steps of the largest size to FILE, for ui.perfetto.dev")
        ->type_name("FILE");
  });
}

void add_record(CLI::App& app, AllreduceOptions& options) {
  app.add_option("--show-record", options.show_record,
                 "Print each rank's last operations, even of a killed rank; start no ranks. "
                 "Reads the files that --flight-recorder wrote to DIR, and names the rank that "
                 "is behind")
      ->type_name("DIR");
}

}  // namespace

void add_modes(CLI::App& app, AllreduceOptions& options) {
  add_explain(app, options);
  add_calibrate(app, options);
  add_simulate(app, options);
  add_record(app, options);
}

void check_modes(const AllreduceOptions& options) {
  if (options.explain + options.calibrate.has_value() + !options.simulate.empty() +
          !options.show_record.empty() >
      1)
    fail(ErrorKind::kUsage,
         "--explain, --calibrate, --simulate and --show-record exclude each other");
  if (!options.svg.empty() && !options.explain)
    fail(ErrorKind::kUsage, "--svg: it needs --explain");
  const bool clusters = !options.simulate.empty() && options.simulate != kSimulateProfile;
  if (clusters) return;
  const std::array<std::pair<const char*, bool>, 4> given = {
      {{"--ranks", options.ranks > 0},
       {"--rank-order", options.rank_order != RankOrder::kGiven},
       {"--channel-order", options.channel_order != RankOrder::kGiven},
       {"--trace", !options.trace.empty() && options.simulate.empty()}}};
  for (const auto& [option, is_given] : given) {
    if (is_given) fail(ErrorKind::kUsage, "{}: it needs --simulate with a cluster file", option);
  }
}

}  // namespace gxp
