// Engine over MPI: its collectives and messages, for clusters that have a tuned MPI and its
// launcher (`mpirun -n 4 gxp ...`). Only in builds with GXP_MPI=ON; needs MPI 3.0.
//   Calls     nonblocking ones, tested until they are done, so that a deadline holds.
//   Bits      sums are MPI's: their order, and so the last bits, may depend on the size of the
//             buffer, the number of ranks and the MPI.
//   Memory    in place on all ranks of a call or on none, but for the root of a call that has one.
//   Errors    MPI does not detect that ranks make different calls: they wait until the deadline, or
//             get kPeer with MPI's text. kConfig from set_selection(): MPI selects its
//             algorithms itself.
//   Counters  none; MPI does not report its traffic.
#pragma once

#include <cstddef>
#include <memory>

#include "lib/base/deadline.h"
#include "lib/collective/engine/engine.h"
#include "lib/device/device.h"

namespace gxp {

class MpiJob;  // mpi_job.h

// Once in a process. Its ranks are MPI's. Owners: the caller and the engines that are made of it.
std::shared_ptr<MpiJob> start_mpi_job();

// The maximum of one MPI call, whose counts are ints: larger transfers take several calls.
inline constexpr size_t kMpiElements = size_t{1} << 30;

// All ranks of the job; all call it. The device gives allocate()'s memory and scratch.
std::unique_ptr<Engine> make_mpi_engine(std::shared_ptr<MpiJob> job, Device& device,
                                        Deadline deadline, size_t most_elements = kMpiElements);

}  // namespace gxp
