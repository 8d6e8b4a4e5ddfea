#include "lib/net/identity/identity.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <span>

#include "lib/base/error.h"
#include "lib/base/hash.h"
#include "lib/base/text/read_number.h"

namespace gxp {
namespace {

constexpr int kMaxHosts = 1 << 20;  // far beyond any cluster; bounds what a bad list can allocate

// Takes a positive number off the front of `text`; 0 if there is none.
int take_number(std::string_view& text) {
  int number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || number < 0) return 0;
  text.remove_prefix(size_t(end - text.data()));
  return number;
}

bool take(std::string_view& text, std::string_view prefix) {
  if (!text.starts_with(prefix)) return false;
  text.remove_prefix(prefix.size());
  return true;
}

// One launcher: its sure sign and its names. A null name: the launcher does not say.
struct Launcher {
  LauncherKind kind;
  bool (*present)(const Environment&);
  const char* rank;
  const char* world_size;
  const char* local_rank;
  const char* local_world_size;
  void (*find_master)(const Environment&, RankIdentity&);
  bool bare_names_may_contradict;
};

const std::string& required(const Environment& environment, const RankIdentity& identity,
                            const char* name) {
  const std::string* value = find_variable(environment, name);
  if (value == nullptr)
    fail(ErrorKind::kConfig, "read the rank identity from {}: {} is not set",
         to_string(identity.launcher), name);
  return *value;
}

int parse_number(const char* name, const std::string& value, int low, int high) {
  const std::optional<int> number = read_number<int>(value);
  if (!number)
    fail(ErrorKind::kConfig, "read the rank identity: {}='{}' is not a number", name, value);
  if (*number < low || *number > high)
    fail(ErrorKind::kConfig, "read the rank identity: {}={} is not within {} to {}", name, value,
         low, high);
  return *number;
}

// The name or address of a host, also as "[::1]". An IPv6 address alone has more colons than one.
std::string host_in(const std::string& address) {
  const bool is_bracketed = address.starts_with('[') && address.ends_with(']');
  const std::string host = is_bracketed ? address.substr(1, address.size() - 2) : address;
  if (host.find_first_of(" \t/[]") != std::string::npos || std::ranges::count(host, ':') == 1)
    fail(ErrorKind::kConfig,
         "read the rank identity: MASTER_ADDR='{}' must be a host's name or address alone; its "
         "port is MASTER_PORT",
         address);
  return host;
}

int job_port(std::string_view job) {
  return 20000 + int(hash64(std::as_bytes(std::span(job))) % 10000);
}

void master_of_gxp(const Environment& environment, RankIdentity& identity) {
  identity.master_addr = required(environment, identity, "GXP_MASTER_ADDR");
  identity.master_port =
      parse_number("GXP_MASTER_PORT", required(environment, identity, "GXP_MASTER_PORT"), 1, 65535);
  identity.port_given = true;
  if (const std::string* job = find_variable(environment, kJobVariable)) identity.job = *job;
}

void master_of_torchrun(const Environment& environment, RankIdentity& identity) {
  constexpr int kDistance = 1000;
  identity.master_addr = host_in(required(environment, identity, "MASTER_ADDR"));
  const int taken =
      parse_number("MASTER_PORT", required(environment, identity, "MASTER_PORT"), 1, 65535);
  identity.master_port = taken + kDistance > 65535 ? taken - kDistance : taken + kDistance;
  identity.port_given = true;
  identity.job = required(environment, identity, "TORCHELASTIC_RUN_ID");
}

// MASTER_ADDR and MASTER_PORT where set, else what the launcher implies ("" if nothing).
void take_master(const Environment& environment, RankIdentity& identity,
                 const std::string& address) {
  const bool one_host = identity.local_world_size == identity.world_size;
  const std::string* given = find_variable(environment, "MASTER_ADDR");
  const auto port = find_number(environment, "MASTER_PORT", 1, 65535);
  const int own_port = identity.job.empty() ? kDefaultMasterPort : job_port(identity.job);
  identity.master_addr = address.empty() && one_host ? "127.0.0.1" : address;
  if (given != nullptr) identity.master_addr = host_in(*given);
  identity.master_port = port.value_or(own_port);
  identity.port_given = port.has_value();
}

void master_of_open_mpi(const Environment& environment, RankIdentity& identity) {
  const std::string* job = find_variable(environment, "PMIX_NAMESPACE");
  if (job != nullptr) identity.job = *job;
  if (job != nullptr) identity.exchange = Exchange::kPmix;
  take_master(environment, identity, "");
}

void master_of_mpich(const Environment& environment, RankIdentity& identity) {
  if (find_variable(environment, "PMI_FD") != nullptr) identity.exchange = Exchange::kPmi;
  take_master(environment, identity, "");
}

void master_of_slurm(const Environment& environment, RankIdentity& identity) {
  const std::string& hosts = required(environment, identity, "SLURM_STEP_NODELIST");
  identity.job = required(environment, identity, "SLURM_JOB_ID") + "." +
                 required(environment, identity, "SLURM_STEP_ID");
  const std::string* type = find_variable(environment, "SLURM_MPI_TYPE");
  const bool speaks = type != nullptr && *type == "pmi2";
  if (speaks && find_variable(environment, "PMI_FD") != nullptr) identity.exchange = Exchange::kPmi;
  take_master(environment, identity, first_host(hosts));
}

void master_by_default(const Environment& environment, RankIdentity& identity) {
  take_master(environment, identity, "");
}

bool has(const Environment& environment, const char* name) {
  return find_variable(environment, name) != nullptr;
}

// Innermost first.
constexpr std::array<Launcher, 6> kLaunchers = {{
    {LauncherKind::kGxp, [](const Environment& e) { return has(e, "GXP_RANK"); }, "GXP_RANK",
     "GXP_WORLD_SIZE", "GXP_LOCAL_RANK", "GXP_LOCAL_WORLD_SIZE", master_of_gxp, false},
    {LauncherKind::kTorchrun, [](const Environment& e) { return has(e, "TORCHELASTIC_RUN_ID"); },
     "RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", master_of_torchrun, false},
    {LauncherKind::kOpenMpi, [](const Environment& e) { return has(e, "OMPI_COMM_WORLD_RANK"); },
     "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK",
     "OMPI_COMM_WORLD_LOCAL_SIZE", master_of_open_mpi, true},
    {LauncherKind::kMpich,
     [](const Environment& e) {
       const bool slurms =
           has(e, "SLURM_MPI_TYPE") || (has(e, "SLURM_STEP_ID") && !has(e, "PMI_FD"));
       return has(e, "PMI_RANK") && has(e, "PMI_SIZE") && !slurms;
     },
     "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS", master_of_mpich, true},
    {LauncherKind::kSlurm, [](const Environment& e) { return has(e, "SLURM_STEP_ID"); },
     "SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID", nullptr, master_of_slurm, true},
    {LauncherKind::kBareRank, [](const Environment& e) { return has(e, "RANK"); }, "RANK",
     "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", master_by_default, false},
}};

// Without LOCAL_RANK a bare RANK on a loopback master shares its host with all ranks; with another
// master it is taken for the only one on its host.
void read_local(const Environment& environment, const Launcher& launcher, RankIdentity& identity) {
  const std::string* master = find_variable(environment, "MASTER_ADDR");
  const bool one_host = master == nullptr || is_loopback(host_in(*master));
  const auto rank = find_number(environment, launcher.local_rank, 0);
  identity.local_rank = rank.value_or(one_host ? identity.rank : 0);
  const auto size = find_number(environment, launcher.local_world_size, 1);
  identity.local_world_size =
      size.value_or(one_host ? identity.world_size : identity.local_rank + 1);
}

void read_slurm_local(const Environment& environment, RankIdentity& identity) {
  const std::string& counts = required(environment, identity, "SLURM_STEP_TASKS_PER_NODE");
  const std::vector<int> tasks = tasks_per_host(counts);
  const int host = find_number(environment, "SLURM_NODEID").value_or(-1);
  if (host < 0 || size_t(host) >= tasks.size())
    fail(ErrorKind::kConfig,
         "read the rank identity: SLURM_NODEID={} has no entry in SLURM_STEP_TASKS_PER_NODE={}",
         host, counts);
  identity.local_world_size = tasks[size_t(host)];
}

void check_bare(const Environment& environment, const Launcher& launcher, const char* launchers,
                const char* bare, int value) {
  const auto other = find_number(environment, bare);
  if (other && *other != value)
    fail(ErrorKind::kConfig,
         "read the rank identity: {}={} ({}) but {}={}; unset the one that is stale", launchers,
         value, to_string(launcher.kind), bare, *other);
}

void check_range(const Launcher& launcher, const char* name, int rank, int size) {
  if (rank < 0 || rank >= size)
    fail(ErrorKind::kConfig, "read the rank identity from {}: {}={} in a size of {}",
         to_string(launcher.kind), name == nullptr ? "rank" : name, rank, size);
}

RankIdentity read(const Environment& environment, const Launcher& launcher) {
  RankIdentity identity;
  identity.launcher = launcher.kind;
  for (const char* name : {launcher.rank, launcher.world_size})
    required(environment, identity, name);
  identity.rank = *find_number(environment, launcher.rank);
  identity.world_size = *find_number(environment, launcher.world_size, 1);
  read_local(environment, launcher, identity);
  if (launcher.kind == LauncherKind::kSlurm) read_slurm_local(environment, identity);
  check_range(launcher, launcher.rank, identity.rank, identity.world_size);
  check_range(launcher, launcher.local_rank, identity.local_rank, identity.local_world_size);
  launcher.find_master(environment, identity);
  if (launcher.bare_names_may_contradict) {
    check_bare(environment, launcher, launcher.rank, "RANK", identity.rank);
    check_bare(environment, launcher, launcher.world_size, "WORLD_SIZE", identity.world_size);
  }
  return identity;
}

// Where a launcher's size is there without the rank, or a rank without the size, one of the two was
// forgotten: each process would take itself for the whole job.
void check_complete(const Environment& environment) {
  const std::string* size = find_variable(environment, "WORLD_SIZE");
  if (size != nullptr && *size != "1")
    fail(ErrorKind::kConfig,
         "read the rank identity: WORLD_SIZE={} is set but RANK is not; set RANK, a number below "
         "WORLD_SIZE, for each process, or unset WORLD_SIZE",
         *size);
  const std::string* rank = find_variable(environment, "PMI_RANK");
  if (rank != nullptr)
    fail(ErrorKind::kConfig,
         "read the rank identity: PMI_RANK={} is set but PMI_SIZE is not; set RANK and WORLD_SIZE "
         "for each process, or unset PMI_RANK",
         *rank);
}

}  // namespace

std::string first_host(std::string_view hosts) {
  std::string host;
  for (size_t i = 0; i < hosts.size() && hosts[i] != ','; ++i) {
    if (hosts[i] != '[') {
      host += hosts[i];
      continue;
    }
    const size_t close = hosts.find(']', i);
    if (close == std::string_view::npos)
      fail(ErrorKind::kConfig, "read Slurm's host list '{}': '[' without ']'", hosts);
    host += hosts.substr(i + 1, hosts.find_first_of(",-]", i) - i - 1);
    i = close;
  }
  if (host.empty()) fail(ErrorKind::kConfig, "read Slurm's host list '{}': no first host", hosts);
  return host;
}

std::vector<int> tasks_per_host(std::string_view counts) {
  std::vector<int> result;
  std::string_view rest = counts;
  do {
    const int tasks = take_number(rest);
    const bool repeated = take(rest, "(x");
    const int hosts = repeated ? take_number(rest) : 1;
    const bool well_formed = tasks > 0 && hosts > 0 && (!repeated || take(rest, ")"));
    if (!well_formed || int(result.size()) + hosts > kMaxHosts)
      fail(ErrorKind::kConfig, "read Slurm's tasks per host '{}': expected a form like 2(x3),1",
           counts);
    result.insert(result.end(), size_t(hosts), tasks);
  } while (take(rest, ","));
  if (!rest.empty())
    fail(ErrorKind::kConfig, "read Slurm's tasks per host '{}': '{}' is unexpected", counts, rest);
  return result;
}

std::string_view to_string(LauncherKind launcher) {
  constexpr std::array<std::string_view, 7> kNames = {
      "gxp launcher", "torchrun",         "Open MPI",      "MPICH",
      "Slurm step",   "environment RANK", "single process"};
  return kNames[size_t(launcher)];
}

std::optional<int> find_number(const Environment& environment, const char* name, int low,
                               int high) {
  const std::string* value = name == nullptr ? nullptr : find_variable(environment, name);
  if (value == nullptr) return std::nullopt;
  return parse_number(name, *value, low, high);
}

RankIdentity identity_from(const Environment& environment) {
  for (const Launcher& launcher : kLaunchers) {
    if (launcher.present(environment)) return read(environment, launcher);
  }
  check_complete(environment);
  return {};
}

RankIdentity identity_of_starter(const Environment& environment) {
  for (const Launcher& launcher : kLaunchers) {
    if (!launcher.present(environment)) continue;
    const RankIdentity identity = read(environment, launcher);
    const bool is_rank = launcher.kind == LauncherKind::kGxp || identity.world_size > 1;
    return is_rank ? identity : RankIdentity{};
  }
  return {};
}

bool is_loopback(std::string_view host) {
  return host == "localhost" || host == "::1" || host.starts_with("127.");
}

bool leads_to_itself(std::string_view host) {
  return is_loopback(host) || host == "0.0.0.0" || host == "::";
}

}  // namespace gxp
