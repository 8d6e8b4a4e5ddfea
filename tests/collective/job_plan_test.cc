#include "lib/collective/engine/job_plan.h"

#include <fstream>

#include "lib/net/store/store_server.h"
#include "lib/topo/plan/plan_file.h"
#include "tests/catch.h"
#include "tests/temporary_directory.h"
#include "tests/topo/complaint.h"

namespace gxp {
namespace {

using Ranks = std::vector<int>;

// Two hosts with two ranks each, and a ring that goes from host to host twice.
const PlanFile kTwoHosts{
    .topology = "two hosts",
    .ranks_of_hosts = {2, 2},
    .plan = {.ranks = 4, .rings = {0, 2, 1, 3, 3, 1, 2, 0}, .groups = {0, 0, 1, 1}}};

std::string planned(const TemporaryDirectory& directory, const std::string& text) {
  std::ofstream(directory.path() + "/plan.json") << text;
  return directory.path() + "/plan.json";
}

}  // namespace

TEST_CASE("without a topology there is no plan", "[collective]") {
  CHECK(plan_for_job("", 4, {}) == RankPlan{});
}

TEST_CASE("a job's ranks have the plan of the file that comm.topology names", "[collective]") {
  const TemporaryDirectory directory;
  const std::string file = planned(directory, write_plan_file(kTwoHosts));
  CHECK(plan_for_job(file, 4, Ranks{0, 0, 1, 1}) == kTwoHosts.plan);
  const RankPlan around = plan_for_job(file, 4, Ranks{0, 1, 0, 1});
  CHECK(around.rings == Ranks{0, 1, 2, 3, 3, 2, 1, 0});
  CHECK(around.groups == Ranks{0, 1, 0, 1});
}

TEST_CASE("what is no plan is refused with the command that writes one", "[collective]") {
  const TemporaryDirectory directory;
  const std::string file = planned(directory, "SwitchName=spine Nodes=a,b\n");
  const std::string what = GENERATE("dgx-h100", "live", "a file");
  const bool is_file = what == "a file";
  CAPTURE(what);
  CHECK(complaint(is_file ? ErrorKind::kCorrupt : ErrorKind::kIo,
                  [&] { plan_for_job(is_file ? file : what, 2, {}); })
            .find("gxp topo plan --from TOPOLOGY --hosts N --format rank-plan > FILE") !=
        std::string::npos);
}

TEST_CASE("all ranks have rank 0's plan", "[collective]") {
  const TemporaryDirectory directory;
  const std::string file = planned(directory, write_plan_file(kTwoHosts));
  const Secret secret = Secret::generate();
  const Deadline soon = Deadline::after(std::chrono::seconds(20));
  const StoreServer server(listen_tcp({"127.0.0.1", 0}), 2, secret);
  const Endpoint endpoint{"127.0.0.1", server.port()};
  Store first(endpoint, 0, 2, secret, soon);
  Store second(endpoint, 1, 2, secret, soon);
  const Ranks hosts = {0, 1};
  const RankPlan expected = plan_for_job(file, 2, hosts);
  CHECK(share_plan_for_job(file, hosts, first, 2, soon) == expected);
  CHECK(share_plan_for_job("what rank 0 sees", hosts, second, 2, soon) == expected);
}

}  // namespace gxp
