// What a rank is started with: this program, the rank's identity, and the point where the ranks meet.
#pragma once

#include <csignal>
#include <functional>

#include "lib/base/environment.h"
#include "lib/net/launch/child_process.h"
#include "lib/net/launch/job_progress.h"
#include "lib/net/launch/launcher.h"
#include "lib/net/store/rendezvous_point.h"

namespace gxp {

// One host: a new secret, and a listening socket on a port that the system chooses. Several: the
// given or the user's secret, and options.master. kConfig as launch().
RendezvousPoint open_rendezvous(const LaunchOptions& options, const Environment& environment);
// What host 0 listens on for the others: all its interfaces, as they may know it by other names.
std::string listening_host(const LaunchOptions& options);

// What the ranks of one attempt have in common.
struct Attempt {
  RendezvousPoint point;
  std::string job;                        // as RankIdentity::job; "": it cannot be restarted
  int number = 0;                         // of the job's attempts, from 0
  const JobProgress* progress = nullptr;  // for rank 0; null: nobody asks
  std::string host_memory{};              // HostMemory::path(); "": there is none
  // Asked at least once a second: whether the ranks are to save and end, to start again with more hosts.
  std::function<bool()> may_grow{};
};

// Of rank `local_rank` of this host. Rank 0 inherits the listening socket and the progress, which
// the caller keeps until it is started. kIo: the path of this program cannot be read.
ChildProcess::Program rank_program(const LaunchOptions& options, const Environment& environment,
                                   const Attempt& attempt, int local_rank, const sigset_t& mask);

}  // namespace gxp
