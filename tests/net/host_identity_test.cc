#include "lib/net/identity/host_identity.h"

#include "tests/catch.h"
#include "tests/error_of.h"

namespace gxp {
namespace {

const Environment kSecondTask = {{"SLURM_STEP_ID", "0"},
                                 {"SLURM_JOB_ID", "7"},
                                 {"SLURM_PROCID", "1"},
                                 {"SLURM_LOCALID", "0"},
                                 {"SLURM_NODEID", "1"},
                                 {"SLURM_STEP_NUM_TASKS", "2"},
                                 {"SLURM_STEP_NODELIST", "node[3,7]"},
                                 {"SLURM_STEP_TASKS_PER_NODE", "1(x2)"}};

Environment with(Environment environment, const Environment& more) {
  for (const auto& [name, value] : more) environment[name] = value;
  return environment;
}

}  // namespace

TEST_CASE("one task of Slurm on each host has the host's place", "[net]") {
  const auto place = host_identity_from(kSecondTask);
  REQUIRE(place);
  CHECK(place->index == 1);
  CHECK(place->count == 2);
  CHECK(place->master_addr == "node3");
  REQUIRE(place->master_port);
  CHECK(*place->master_port >= 20000);
}

TEST_CASE("torchrun's variables and a Pod's index name the host", "[net]") {
  const Environment pod = {{"PET_NODE_RANK", "2"}, {"PET_NNODES", "3"},     {"RANK", "2"},
                           {"WORLD_SIZE", "3"},    {"MASTER_ADDR", "boss"}, {"MASTER_PORT", "99"}};
  for (const auto& [more, address, port] :
       std::initializer_list<std::tuple<Environment, const char*, int>>{
           {{}, "boss", 99},
           {{{"PET_MASTER_ADDR", "other"}, {"PET_MASTER_PORT", "98"}}, "other", 98}}) {
    const auto place = host_identity_from(with(pod, more));
    REQUIRE(place);
    CHECK(place->index == 2);
    CHECK(place->count == 3);
    CHECK(place->master_addr == address);
    CHECK(place->master_port == port);
  }
  const auto indexed = host_identity_from({{"JOB_COMPLETION_INDEX", "4"}});
  REQUIRE(indexed);
  CHECK(indexed->index == 4);
  CHECK_FALSE(indexed->count);
  CHECK(indexed->master_addr.empty());
}

TEST_CASE("a rank has no place of a host", "[net]") {
  const Environment environment = GENERATE_COPY(
      Environment{},
      with(kSecondTask, {{"SLURM_STEP_NUM_TASKS", "3"}, {"SLURM_STEP_TASKS_PER_NODE", "1,2"}}),
      Environment{{"RANK", "1"}, {"WORLD_SIZE", "2"}, {"JOB_COMPLETION_INDEX", "1"}},
      Environment{{"OMPI_COMM_WORLD_RANK", "1"},
                  {"OMPI_COMM_WORLD_SIZE", "2"},
                  {"OMPI_COMM_WORLD_LOCAL_RANK", "0"},
                  {"OMPI_COMM_WORLD_LOCAL_SIZE", "1"}},
      with(kSecondTask, {{"GXP_RANK", "0"},
                         {"GXP_WORLD_SIZE", "2"},
                         {"GXP_LOCAL_RANK", "0"},
                         {"GXP_LOCAL_WORLD_SIZE", "1"},
                         {"GXP_MASTER_ADDR", "127.0.0.1"},
                         {"GXP_MASTER_PORT", "1"}}));
  CHECK_FALSE(host_identity_from(environment));
}

TEST_CASE("a place that is no number is an error", "[net]") {
  const auto [variable, value] = GENERATE(table<const char*, const char*>(
      {{"PET_NODE_RANK", "first"}, {"PET_NNODES", "1:4"}, {"PET_MASTER_PORT", "0"}}));
  const Environment environment = with({{"PET_NODE_RANK", "0"}}, {{variable, value}});
  CHECK(error_of([&] { host_identity_from(environment); }).kind == ErrorKind::kConfig);
}

TEST_CASE("a process that others were started with is not taken for the whole job", "[net]") {
  const auto [environment, sign] = GENERATE(table<Environment, std::string>({
      {{{"FLUX_JOB_SIZE", "4"}, {"FLUX_TASK_RANK", "0"}}, "FLUX_JOB_SIZE=4"},
      {{{"MV2_COMM_WORLD_SIZE", "2"}, {"MV2_COMM_WORLD_RANK", "0"}}, "MV2_COMM_WORLD_SIZE=2"},
      {{{"LOCAL_RANK", "0"}, {"LOCAL_WORLD_SIZE", "2"}}, "LOCAL_WORLD_SIZE=2"},
      {{{"PET_NNODES", "2"}, {"PET_NODE_RANK", "0"}}, "PET_NNODES=2"},
      {{{"PET_NNODES", "1"}, {"PET_NPROC_PER_NODE", "4"}}, "give --nproc 4"},
      {{{"PMIX_RANK", "1"}}, "PMIX_RANK=1"},
  }));
  const Caught caught = error_of([&, &variables = environment] { check_single_rank(variables); });
  CHECK(caught.kind == ErrorKind::kUsage);
  CHECK(caught.says(sign));
  for (const Environment& alone :
       {Environment{{"PET_NNODES", "1:4"}, {"PMIX_RANK", "0"}, {"PMI_SIZE", "1"}}, kSecondTask})
    check_single_rank(alone);
}

}  // namespace gxp
