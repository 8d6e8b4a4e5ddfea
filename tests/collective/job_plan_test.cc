#include "lib/collective/engine/job_plan.h"

#include <fstream>

#include "lib/net/store/store_server.h"
#include "tests/catch.h"
#include "tests/temporary_directory.h"
#include "tests/topo/complaint.h"

namespace gxp {
namespace {

using Ranks = std::vector<int>;

constexpr const char* kTwoLeaves =
    "SwitchName=spine Switches=left,right\n"
    "SwitchName=left Nodes=a,c\n"
    "SwitchName=right Nodes=b,d\n";

std::string slurm_file(const TemporaryDirectory& directory) {
  const std::string path = directory.path() + "/topology.conf";
  std::ofstream(path) << kTwoLeaves;
  return path;
}

}  // namespace

TEST_CASE("without a topology there is no plan", "[estimate]") {
  CHECK(plan_for_job("", 4, {}) == RankPlan{});
}

TEST_CASE("ranks follow each other by host, and hosts by switch", "[estimate]") {
  const TemporaryDirectory directory;
  const Ranks hosts = {0, 0, 1, 1, 2, 2, 3, 3};  // a, c, b, d as Slurm's file names them
  const RankPlan plan = plan_for_job(slurm_file(directory), 8, hosts);
  CHECK(plan.rings == Ranks{0, 1, 2, 3, 4, 5, 6, 7});
  const Ranks around = {0, 1, 2, 3, 0, 1, 2, 3};  // rank 4 is the second on host a
  CHECK(plan_for_job(slurm_file(directory), 8, around).rings == Ranks{0, 4, 1, 5, 2, 6, 3, 7});
  CHECK(plan_for_job(slurm_file(directory), 8, around).groups == around);
}

TEST_CASE("all hosts are like the topology's one", "[estimate]") {
  const RankPlan plan = plan_for_job("dgx-h100", 8, Ranks{0, 1, 0, 1, 0, 1, 0, 1});
  CHECK(plan.groups == Ranks{0, 1, 0, 1, 0, 1, 0, 1});
  REQUIRE(plan.rings.size() % 8 == 0);
  for (size_t at = 0; at < plan.rings.size(); at += 4) {
    for (size_t i = 1; i < 4; ++i) CHECK(plan.rings[at + i] % 2 == plan.rings[at] % 2);
  }
}

TEST_CASE("a topology that does not fit the job is refused", "[estimate]") {
  const TemporaryDirectory directory;
  const std::string file = slurm_file(directory);
  const auto [topology, ranks, hosts, said] =
      GENERATE_REF(table<std::string, int, Ranks, std::string>(
          {{file, 2, {0, 1}, "it has 4 hosts and the job 2"},
           {"ring:4", 5, {}, "host ring:4 has 4 GPUs and the job more ranks there"},
           {"dgx-h100", 10, {0, 1, 1, 1, 1, 1, 1, 1, 1, 1}, "has 8 GPUs"}}));
  CHECK(complaint(ErrorKind::kConfig, [&, &topology = topology, &ranks = ranks, &hosts = hosts] {
          plan_for_job(topology, ranks, hosts);
        }).find(said) != std::string::npos);
}

TEST_CASE("all ranks have rank 0's plan", "[estimate]") {
  const Secret secret = Secret::generate();
  const Deadline soon = Deadline::after(std::chrono::seconds(20));
  const StoreServer server(listen_tcp({"127.0.0.1", 0}), 2, secret);
  const Endpoint endpoint{"127.0.0.1", server.port()};
  Store first(endpoint, 0, 2, secret, soon);
  Store second(endpoint, 1, 2, secret, soon);
  const RankPlan expected = plan_for_job("2xnuma:4", 2, {});
  const RankPlan own = share_plan_for_job("2xnuma:4", {}, first, 2, soon);
  const RankPlan other = share_plan_for_job("what rank 0 sees", {}, second, 2, soon);
  CHECK(own == expected);
  CHECK(other == expected);
}

}  // namespace gxp
