// The rank identity of this process, which its launcher passes in environment variables.
//
// Launchers nest (mpirun in a Slurm allocation, torchrun under srun), and each leaves its variables
// to those inside it; so the innermost one wins. In this order, with the variable that identifies
// each:
//   gxp launcher      GXP_RANK                     lib/net/launch/launcher.h
//   torchrun          TORCHELASTIC_RUN_ID
//   Open MPI          OMPI_COMM_WORLD_RANK
//   MPICH             PMI_RANK and PMI_SIZE, not set by Slurm   (Hydra)
//   Slurm step        SLURM_STEP_ID                a batch script without srun has none
//   environment RANK  RANK                         torchrun's names, set by hand or by a Pod
//   single process    none of these
// A RANK or WORLD_SIZE that contradicts MPI or Slurm is an error: one of the two is stale. A
// WORLD_SIZE above 1 without RANK, or a PMI_RANK without PMI_SIZE, is an error too, unless another
// launcher has set its variables.
//
// Where rank 0's store listens: MASTER_ADDR and MASTER_PORT where they are set. Otherwise
//   torchrun  MASTER_PORT + 1000, as torchrun's own store holds MASTER_PORT, and that of the next
//             torchrun on a host often the port after it;
//   Slurm     the first host of SLURM_STEP_NODELIST;
//   others    127.0.0.1 if all ranks are on one host, else only rank 0 knows;
//   the port  20000 to 29999 by a hash of the job's name (Slurm's job and step, Open MPI's
//             PMIX_NAMESPACE), else 29511. All lie below Linux's ephemeral ports (32768).
// Where the launcher has a key-value exchange, rank 0 takes a free port and sends the others
// (lib/net/store/rendezvous_point.h); the address here then serves only if the exchange is closed.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lib/base/environment.h"

namespace gxp {

// Slurm's two compressed lists: hosts ("host[0-3,7],login") and tasks per host ("2(x3),1").
// Source: Slurm's hostlist syntax (scontrol(1), "show hostnames") and srun(1),
// SLURM_STEP_TASKS_PER_NODE.

// The first host: "host[03-12,7],login" gives "host03", "r[1-2]n[5,9]" gives "r1n5".
// Throws kConfig if the list is empty or a bracket is not closed.
std::string first_host(std::string_view hosts);

// One count per host, in the order of the host list: "2(x2),1" gives 2, 2, 1. Throws kConfig.
std::vector<int> tasks_per_host(std::string_view counts);

inline constexpr int kDefaultMasterPort = 29511;
inline constexpr const char* kJobVariable = "GXP_JOB";  // RankIdentity::job, by gxp's launcher

// The launcher's key-value exchange by which rank 0 can pass a text to the other ranks before they
// can connect to it.
enum class Exchange : uint8_t {
  kNone,
  kPmi,   // Hydra, srun --mpi=pmi2: lib/net/identity/pmi.h
  kPmix,  // Open MPI: lib/net/identity/pmix.h
};

// The launcher of this process: the rows of the table above.
enum class LauncherKind : uint8_t { kGxp, kTorchrun, kOpenMpi, kMpich, kSlurm, kBareRank, kNone };
// "gxp launcher", "torchrun", ...
std::string_view to_string(LauncherKind launcher);

struct RankIdentity {
  int rank = 0;
  int world_size = 1;
  int local_rank = 0;
  int local_world_size = 1;               // for a bare RANK without it: at least local_rank + 1
  std::string master_addr = "127.0.0.1";  // "": the launcher does not say
  int master_port = 0;                    // 0, without a launcher only: any
  LauncherKind launcher = LauncherKind::kNone;
  bool port_given = false;  // master_port is the user's or launcher's, not one of ours
  Exchange exchange = Exchange::kNone;
  std::string job;  // the launcher's name of it, the same on all ranks; "": it has none
};

// Pure. Throws kConfig, naming variable and value, if one is malformed, missing, out of range or
// contradicts another.
RankIdentity identity_from(const Environment& environment);
// The same for a process that is asked to start ranks itself. If its launcher has started it as the
// only rank, as a shell by "srun --pty" or a notebook by "mpirun -n 1", the launcher is ignored:
// LauncherKind::kNone.
RankIdentity identity_of_starter(const Environment& environment);

inline constexpr int kMaxRanks = 1 << 24;

// The number in a variable; nothing if it is not set, or `name` is null. Throws kConfig, naming
// variable and value, if it is none from `low` to `high`.
std::optional<int> find_number(const Environment& environment, const char* name, int low = 0,
                               int high = kMaxRanks);

// "localhost", "127.x.y.z", "::1": an address that no other host can reach.
bool is_loopback(std::string_view host);
// Whether is_loopback(), or "0.0.0.0" or "::": addresses by which each host reaches itself.
bool leads_to_itself(std::string_view host);

}  // namespace gxp
