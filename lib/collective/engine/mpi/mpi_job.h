// This process as a rank of an MPI job. Only in builds with GXP_MPI=ON; only the files mpi_*
// include this header and MPI's.
//   Threads  one at a time may call MPI (MPI_THREAD_SERIALIZED); stop() any.
//   Errors   MPI's own become kPeer, with its text.
#pragma once

#include <mpi.h>

#include <span>
#include <string_view>

#include "lib/base/deadline.h"
#include "lib/collective/engine/library_wait.h"

namespace gxp {

// Throws kPeer with MPI's own text, "ACT: MPI_ERR_TRUNCATE: message truncated".
void check_mpi(int result, std::string_view act);

// MPI can be started once in the life of a process, so there is one MpiJob in it. A process that
// exits after a failure takes the other ranks with it by MPI_Abort with its exit code: MPI has
// nothing else for ranks that wait for one that will not come.
class MpiJob {
 public:
  // Starts MPI: as the launcher's rank, or alone where there is no launcher. Waits for the other
  // ranks as long as MPI does. kUnavailable: MPI was in use before, or lets one thread call only.
  MpiJob();
  // Ends MPI when all ranks do, unless something failed.
  ~MpiJob();
  MpiJob(const MpiJob&) = delete;
  MpiJob& operator=(const MpiJob&) = delete;

  // Returns when the request is done. kPeer: at the deadline, after stop(), or as MPI says; the
  // request and its memory are then MPI's until the process ends.
  void wait(MPI_Request& request, Deadline deadline);
  // All of them; `statuses` has one for each.
  void wait(std::span<MPI_Request> requests, std::span<MPI_Status> statuses, Deadline deadline);
  // Every wait throws kPeer with this reason from now on; the first one counts.
  void stop(std::string_view reason) noexcept { aborted_.set(reason); }

 private:
  template <class Test>
  void wait_until(const Test& test, Deadline deadline);

  AbortFlag aborted_;
  bool failed_ = false;  // something may be under way that nobody waits for
};

}  // namespace gxp
