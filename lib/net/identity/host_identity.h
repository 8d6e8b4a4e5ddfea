// The place of this process where a launcher has started one on each host, to start the host's ranks:
//
//   Slurm step       of one task on each of several hosts: srun --ntasks-per-node=1
//   PET_NODE_RANK    what torchrun reads where nobody gives it options: Kubeflow's PyTorchJob and
//                    TrainJob set it in each Pod. Sources: training-operator, pkg/controller.v1/pytorch
//                    (elastic.go, envvar.go, master.go); torchrun's --help, "PET_"
//   Indexed Job      JOB_COMPLETION_INDEX: Kubernetes tells a Pod its index, but neither how many
//                    there are nor where the first one is
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "lib/base/environment.h"

namespace gxp {

struct HostIdentity {
  std::string_view source;     // what says so: the variable of the index
  int index = 0;               // of this host
  std::optional<int> count{};  // of hosts
  std::string master_addr{};   // of host 0; "": unknown
  std::optional<int> master_port{};
};

// Pure. Nothing if this process is a rank, or nobody says which host it is on. Throws kConfig, naming
// variable and value, if one is malformed or missing.
std::optional<HostIdentity> host_identity_from(const Environment& environment);

// For a process that is asked for no other ranks. kUsage: its launcher started several or was asked
// for more ranks, and does not say which one this is: each would take itself for the whole job. A
// warning: a job of Slurm has more tasks, but this is no step of it.
void check_single_rank(const Environment& environment);

}  // namespace gxp
