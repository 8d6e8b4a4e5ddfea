#include <string>

#include "lib/base/error.h"
#include "lib/job/join.h"
#include "tests/catch.h"
#include "tests/error_of.h"

using namespace gxp;

namespace {

// One task of Slurm on each of so many hosts.
Environment step_of(int hosts) {
  const std::string count = std::to_string(hosts);
  return {{"SLURM_JOB_ID", "7"},
          {"SLURM_STEP_ID", "0"},
          {"SLURM_PROCID", "0"},
          {"SLURM_LOCALID", "0"},
          {"SLURM_NODEID", "0"},
          {"SLURM_STEP_NUM_TASKS", count},
          {"SLURM_STEP_TASKS_PER_NODE", "1(x" + count + ")"},
          {"SLURM_STEP_NODELIST", "node[3-" + std::to_string(2 + hosts) + "]"}};
}

LaunchRequest asks(int hosts, int least, int spares) {
  LaunchRequest request;
  request.nproc = 2;
  request.given_nnodes = hosts;
  request.min_nnodes = least;
  request.spares = spares;
  request.max_restarts = 1;
  return request;
}

}  // namespace

TEST_CASE("a range of hosts takes as many as Slurm gives", "[job]") {
  const int hosts = GENERATE(1, 2, 3);
  LaunchRequest request = asks(3, 1, 0);
  place_host(request, step_of(hosts));
  CHECK(request.is_host);
  CHECK(request.nnodes == hosts);
  CHECK(request.node_rank == 0);
  CHECK(request.master.starts_with("node3:"));
}

TEST_CASE("Slurm's number of hosts may not be another than is asked for", "[job]") {
  const auto [least, most, spares, hosts] = GENERATE(table<int, int, int, int>(
      {{0, 2, 0, 1}, {0, 2, 0, 3}, {2, 3, 0, 1}, {1, 2, 0, 3}, {1, 2, 1, 2}}));
  LaunchRequest request = asks(most, least, spares);
  const Caught caught = error_of([&] { place_host(request, step_of(hosts)); });
  CAPTURE(caught.message);
  CHECK(caught.kind == ErrorKind::kUsage);
  CHECK(caught.says("it is " + std::to_string(hosts) + " by SLURM_NODEID"));
}

TEST_CASE("a step of Slurm on each host leaves their numbers to its script", "[job]") {
  LaunchRequest request = asks(2, 0, 0);
  request.given_node_rank = 1;
  request.master = "boss:99";
  place_host(request, step_of(1));
  CHECK(request.nnodes == 2);
  CHECK(request.node_rank == 1);
  CHECK(request.master == "boss:99");
}
