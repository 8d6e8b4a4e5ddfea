#include "lib/net/identity/identity.h"

#include <cstdlib>
#include <vector>

#include "tests/catch.h"
#include "tests/error_of.h"

using namespace gxp;

namespace {

struct Row {
  const char* what;
  Environment environment;
  RankIdentity expected;
};

const Environment kTorchrun = {{"TORCHELASTIC_RUN_ID", "none"},
                               {"TORCHELASTIC_USE_AGENT_STORE", "True"},
                               {"RANK", "3"},
                               {"WORLD_SIZE", "4"},
                               {"LOCAL_RANK", "1"},
                               {"LOCAL_WORLD_SIZE", "2"},
                               {"MASTER_ADDR", "host0"},
                               {"MASTER_PORT", "29501"}};
const Environment kSlurm = {{"SLURM_JOB_ID", "7"},
                            {"SLURM_STEP_ID", "0"},
                            {"SLURM_PROCID", "2"},
                            {"SLURM_NTASKS", "3"},
                            {"SLURM_STEP_NUM_TASKS", "3"},
                            {"SLURM_LOCALID", "0"},
                            {"SLURM_NODEID", "1"},
                            {"SLURM_STEP_TASKS_PER_NODE", "2,1"},
                            {"SLURM_STEP_NODELIST", "host[0-1]"},
                            {"SLURM_JOB_NODELIST", "host[9-12]"},
                            {"MASTER_PORT", "29600"}};
const Environment kOpenMpi = {{"OMPI_COMM_WORLD_RANK", "1"},
                              {"OMPI_COMM_WORLD_SIZE", "4"},
                              {"OMPI_COMM_WORLD_LOCAL_RANK", "1"},
                              {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"},
                              {"PMIX_RANK", "1"},
                              {"MASTER_ADDR", "host0"},
                              {"MASTER_PORT", "29600"}};
const Environment kMpich = {{"PMI_RANK", "3"},
                            {"PMI_SIZE", "4"},
                            {"PMI_FD", "6"},
                            {"MPI_LOCALRANKID", "3"},
                            {"MPI_LOCALNRANKS", "4"}};
const Environment kBare = {{"RANK", "1"},
                           {"WORLD_SIZE", "2"},
                           {"LOCAL_RANK", "1"},
                           {"MASTER_ADDR", "127.0.0.1"},
                           {"MASTER_PORT", "29600"}};
const Environment kGxp = {{"GXP_RANK", "2"},          {"GXP_WORLD_SIZE", "4"},
                          {"GXP_LOCAL_RANK", "0"},    {"GXP_LOCAL_WORLD_SIZE", "2"},
                          {"GXP_MASTER_ADDR", "::1"}, {"GXP_MASTER_PORT", "4242"}};

Environment merged(Environment base, const Environment& over) {
  for (const auto& [name, value] : over) base[name] = value;
  return base;
}

std::vector<Row> rows() {
  const auto none = Exchange::kNone;
  const RankIdentity torchrun{3,    4,    1,     2, "host0", 30501, LauncherKind::kTorchrun,
                              true, none, "none"};
  const RankIdentity slurm{2, 3, 0, 1, "host0", 29600, LauncherKind::kSlurm, true, none, "7.0"};
  const RankIdentity open_mpi{1, 4, 1, 2, "host0", 29600, LauncherKind::kOpenMpi, true, none, ""};
  const RankIdentity mpich{
      3, 4, 3, 4, "127.0.0.1", kDefaultMasterPort, LauncherKind::kMpich, false, Exchange::kPmi, ""};
  const RankIdentity bare{1, 2, 1, 2, "127.0.0.1", 29600, LauncherKind::kBareRank, true, none, ""};
  const RankIdentity gxp{2, 4, 0, 2, "::1", 4242, LauncherKind::kGxp, true, none, ""};
  RankIdentity without_exchange = mpich;
  without_exchange.exchange = none;
  RankIdentity slurm_pmi = slurm;
  slurm_pmi.exchange = Exchange::kPmi;
  RankIdentity bracketed = torchrun;
  bracketed.master_addr = "::1";
  RankIdentity somewhere = open_mpi;
  somewhere.master_addr = "";
  somewhere.master_port = kDefaultMasterPort;
  somewhere.port_given = false;
  const Environment daemon = {
      {"SLURM_JOB_ID", "7"}, {"SLURM_STEP_ID", "0"}, {"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "1"}};
  return {
      {"nothing", {}, {}},
      {"torchrun", kTorchrun, torchrun},
      {"Slurm step", kSlurm, slurm},
      {"Open MPI", kOpenMpi, open_mpi},
      {"MPICH", kMpich, mpich},
      {"bare RANK", kBare, bare},
      {"gxp launcher", kGxp, gxp},
      {"torchrun under srun", merged(kSlurm, kTorchrun), torchrun},
      {"mpirun in an allocation", merged(daemon, kOpenMpi), open_mpi},
      {"mpirun.mpich in an allocation", merged(daemon, kMpich), mpich},
      {"gxp launcher under torchrun", merged(kTorchrun, kGxp), gxp},
      {"srun --mpi=pmi2",
       merged(kSlurm, {{"PMI_FD", "9"}, {"PMI_RANK", "2"}, {"SLURM_MPI_TYPE", "pmi2"}}), slurm_pmi},
      {"Open MPI on two hosts, with nothing set",
       merged(kOpenMpi, {{"MASTER_ADDR", ""}, {"MASTER_PORT", ""}}), somewhere},
      {"a batch script without srun",
       {{"SLURM_JOB_ID", "7"}, {"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "4"}},
       {}},
      {"MPICH without a key-value exchange", merged(kMpich, {{"PMI_FD", ""}}), without_exchange},
      {"an older srun's PMI_RANK", merged(kSlurm, {{"PMI_RANK", "2"}, {"PMI_SIZE", "3"}}), slurm},
      {"a WORLD_SIZE of one", {{"WORLD_SIZE", "1"}}, {}},
      {"an address in brackets", merged(kTorchrun, {{"MASTER_ADDR", "[::1]"}}), bracketed},
      {"RANK that agrees with Slurm", merged(kSlurm, {{"RANK", "2"}}), slurm},
  };
}

struct BadRow {
  Environment environment;
  std::vector<const char*> parts;  // of the message
};

std::vector<BadRow> bad_rows() {
  return {
      {merged(kTorchrun, {{"WORLD_SIZE", "four"}}), {"WORLD_SIZE='four'", "not a number"}},
      {merged(kTorchrun, {{"RANK", "4"}}), {"RANK=4", "size of 4"}},
      {merged(kTorchrun, {{"MASTER_PORT", "70000"}}), {"MASTER_PORT=70000"}},
      {merged(kTorchrun, {{"MASTER_ADDR", ""}}), {"torchrun", "MASTER_ADDR is not set"}},
      {merged(kBare, {{"MASTER_ADDR", "host0:29500"}}), {"MASTER_ADDR='host0:29500'", "alone"}},
      {merged(kBare, {{"MASTER_ADDR", "tcp://host0"}}), {"MASTER_ADDR='tcp://host0'", "alone"}},
      {merged(kBare, {{"MASTER_ADDR", " host0"}}), {"MASTER_ADDR=' host0'", "alone"}},
      {merged(kBare, {{"RANK", "-1"}}), {"RANK=-1"}},
      {merged(kBare, {{"WORLD_SIZE", ""}}), {"WORLD_SIZE is not set"}},
      {{{"WORLD_SIZE", "2"}, {"MASTER_ADDR", "host0"}}, {"WORLD_SIZE=2", "RANK is not"}},
      {{{"PMI_RANK", "1"}}, {"PMI_RANK=1", "PMI_SIZE is not"}},
      {{{"PMI_RANK", "1"}, {"PMI_FD", "6"}}, {"PMI_RANK=1", "PMI_SIZE is not"}},
      {merged(kSlurm, {{"RANK", "0"}}), {"SLURM_PROCID=2", "Slurm step", "RANK=0"}},
      {merged(kOpenMpi, {{"WORLD_SIZE", "8"}}), {"OMPI_COMM_WORLD_SIZE=4", "WORLD_SIZE=8"}},
      {merged(kSlurm, {{"SLURM_STEP_TASKS_PER_NODE", "2(x"}}), {"2(x"}},
      {merged(kSlurm, {{"SLURM_NODEID", "2"}}), {"SLURM_NODEID=2"}},
  };
}

}  // namespace

TEST_CASE("the innermost launcher's variables give the rank identity", "[net]") {
  for (const Row& row : rows()) {
    CAPTURE(row.what);
    const RankIdentity got = identity_from(row.environment);
    const RankIdentity& want = row.expected;
    CHECK(got.rank == want.rank);
    CHECK(got.world_size == want.world_size);
    CHECK(got.local_rank == want.local_rank);
    CHECK(got.local_world_size == want.local_world_size);
    CHECK(got.master_addr == want.master_addr);
    CHECK(got.master_port == want.master_port);
    CHECK(got.launcher == want.launcher);
    CHECK(got.port_given == want.port_given);
    CHECK((got.exchange == want.exchange && got.job == want.job));
  }
}

TEST_CASE("who is to start ranks is none itself where it is its launcher's only one", "[net]") {
  const Environment shell = merged(kSlurm, {{"SLURM_PROCID", "0"},
                                            {"SLURM_STEP_NUM_TASKS", "1"},
                                            {"SLURM_NODEID", "0"},
                                            {"SLURM_STEP_TASKS_PER_NODE", "1"},
                                            {"SLURM_STEP_NODELIST", "host0"}});
  const Environment notebook = merged(kOpenMpi, {{"OMPI_COMM_WORLD_RANK", "0"},
                                                 {"OMPI_COMM_WORLD_SIZE", "1"},
                                                 {"OMPI_COMM_WORLD_LOCAL_RANK", "0"},
                                                 {"OMPI_COMM_WORLD_LOCAL_SIZE", "1"}});
  const Environment forgotten = {{"WORLD_SIZE", "4"}};
  for (const Environment& environment : {shell, notebook, forgotten, Environment{}})
    CHECK(identity_of_starter(environment).launcher == LauncherKind::kNone);
  for (const Environment& environment : {kSlurm, kOpenMpi, kGxp, kTorchrun})
    CHECK(identity_of_starter(environment).launcher == identity_from(environment).launcher);
}

TEST_CASE("a malformed, missing or contradictory variable is named with its value", "[net]") {
  for (const BadRow& row : bad_rows()) {
    const Caught caught = error_of([&] { identity_from(row.environment); });
    CAPTURE(caught.message, row.parts[0]);
    CHECK(caught.kind == ErrorKind::kConfig);
    for (const char* part : row.parts) CHECK(caught.says(part));
  }
}

TEST_CASE("the ranks of a Slurm step derive one port from job and step, below 32768", "[net]") {
  Environment first = kSlurm;
  first.erase("MASTER_PORT");
  const Environment other = merged(first, {{"SLURM_PROCID", "1"}, {"SLURM_NODEID", "0"}});
  const int port = identity_from(first).master_port;
  CHECK(port == identity_from(other).master_port);
  CHECK((port >= 20000 && port < 30000));
  CHECK(port != identity_from(merged(first, {{"SLURM_STEP_ID", "1"}})).master_port);
}

TEST_CASE("neighbouring torchruns on a host leave each other's ports alone", "[net]") {
  for (const int port : {29500, 29501, 65535}) {
    const auto identity = identity_from(merged(kTorchrun, {{"MASTER_PORT", std::to_string(port)}}));
    CHECK(std::abs(identity.master_port - port) == 1000);
    CHECK(identity.master_port <= 65535);
  }
}

TEST_CASE("Open MPI's namespace names the job, which can exchange keys", "[net]") {
  Environment environment = merged(kOpenMpi, {{"PMIX_NAMESPACE", "603193345"}});
  environment.erase("MASTER_PORT");
  const RankIdentity identity = identity_from(environment);
  CHECK((identity.job == "603193345" && identity.exchange == Exchange::kPmix));
  CHECK((!identity.port_given && identity.master_port >= 20000 && identity.master_port < 30000));
}

TEST_CASE("a bare RANK without LOCAL_RANK shares its host only if the master is here", "[net]") {
  const Environment rank = {{"RANK", "1"}, {"WORLD_SIZE", "2"}};
  CHECK(identity_from(rank).local_rank == 1);
  CHECK(identity_from(merged(rank, {{"MASTER_ADDR", "host0"}})).local_rank == 0);
}

TEST_CASE("Slurm's compressed lists are expanded as Slurm does", "[net]") {
  CHECK(first_host("host0") == "host0");
  CHECK(first_host("host[0-3,7],login") == "host0");
  CHECK(first_host("host[03-12]-ib") == "host03-ib");
  CHECK(first_host("r[1-2]n[5,9]") == "r1n5");
  CHECK(tasks_per_host("2(x2),1") == std::vector<int>{2, 2, 1});
  CHECK(tasks_per_host("4") == std::vector<int>{4});
  for (const char* bad : {"", "host[0", ","})
    CHECK(error_of([&] { first_host(bad); }).kind == ErrorKind::kConfig);
  for (const char* bad : {"", "2(x", "2(x0)", "a", "2,", "2;3", "9(x99999999)"})
    CHECK(error_of([&] { tasks_per_host(bad); }).kind == ErrorKind::kConfig);
}
