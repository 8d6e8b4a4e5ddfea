#include "cmd/launch_options.h"

#include <CLI/CLI.hpp>
#include <charconv>
#include <string>

namespace gxp {
namespace {

// CLI::Range lets nan pass, and a clock cannot count 1e10 s.
std::string seconds_to_wait(const std::string& text) {
  double seconds = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), seconds);
  const bool whole = error == std::errc() && end == text.data() + text.size();
  return whole && seconds >= 0.001 && seconds <= 1e6 ? "" : "must be from 0.001 to 1000000 seconds";
}

}  // namespace

void add_launch_options(CLI::App& app, LaunchRequest& request) {
  app.add_option("--nproc", request.nproc, "Ranks to start on this host")
      ->check(CLI::Range(1, 4096))
      ->type_name("N");
  app.add_option("--nnodes", request.nnodes, "Hosts that run this same command")
      ->check(CLI::Range(1, 65536))
      ->type_name("N");
  app.add_option("--node-rank", request.node_rank, "Which of them this one is, from 0")
      ->check(CLI::NonNegativeNumber)
      ->type_name("N");
  app.add_option("--master", request.master, "Where rank 0, on the first host, listens")
      ->type_name("HOST:PORT");
  app.add_flag("--no-bind", request.no_bind,
               "Let the system move ranks between CPUs; without it, each gets its share of them, "
               "where there are enough or as many ranks can share each");
  app.add_option("--join-timeout", request.join_timeout_s,
                 "Seconds to wait for all ranks to come; 60")
      ->check(seconds_to_wait)
      ->type_name("SECONDS");
}

}  // namespace gxp
