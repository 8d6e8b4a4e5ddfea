// gxp as its own launcher: starts this host's ranks as copies of the running program.
//
//   Identity  through the GXP_... variables of lib/net/identity/identity.h.
//   Secret    one host: made here. Several: every host's launcher needs the same one, from the
//             environment (lib/net/socket/secret.h) or the user's file
//             (lib/net/identity/user_secret.h).
//   Port      one host: the system chooses it and rank 0 inherits the listening socket, so that no
//             other process can take it in between. Several: `master`; with restarts, the launchers
//             meet there, and each attempt's port is chosen on host 0 as on one host.
//   Output    passed on in whole lines, those of ranks with "[rank N] " before them, except lines
//             that say so themselves ("gxp[rank N] ...") and rank 0's stdout, which carries the
//             results. Ranks read nothing: their stdin is /dev/null.
//             The line "gxp: error: CAUSE" with which a rank ends waits until the culprit is known,
//             and each cause is printed once, the culprit's first, as "gxp[rank N] error CAUSE"
//             (lib/net/launch/exit_messages.h). The launcher names a culprit that has left none.
//             A slow or stopped reader delays no rank: results are buffered in memory, up
//             to 64 MiB, and of the log what is beyond 4 MiB is dropped, with a line that counts
//             it. Such a reader delays the launcher's exit until a signal arrives, but nothing
//             else.
//   Failure   when a rank fails, the others normally learn it from the store and end. Those that
//             have not after `terminate_after` get SIGTERM, after `kill_after` SIGKILL. On several
//             hosts, nobody here would fail if all ranks here were stopped (SIGSTOP): they get
//             SIGKILL after `stopped_after`, when the ranks of other hosts have given up on them. A
//             rank that has not ended `leave_after` after SIGKILL (a frozen cgroup, a disk that
//             hangs) is left.
//   Signals   the first SIGINT or SIGTERM, the first SIGUSR1 and, unless it is ignored, the first
//             SIGHUP go to all ranks (to finish the step and save); a second SIGINT or SIGTERM
//             kills them, and output that the reader has not taken is dropped. Ranks are in process
//             groups of their own, so that a terminal's Ctrl-C reaches them once. A signal that is
//             sent to the ranks as well, before or after, is the same request; so is a SIGINT or
//             SIGTERM that comes twice within `same_signal_within`.
//   CPUs      where the host has a CPU for each of its ranks, each rank gets an even share of them
//             for itself: left to the system, two ranks that wait for each other may share one for
//             long (8 bytes over TCP: 65 us instead of 4).
//   Restarts  with max_restarts: when ranks were killed by a signal, or have lost a peer or a device
//             (exit code 5), all are started again once the last has ended, with another port and
//             secret; the ranks themselves find out what they continue from. Not after any other
//             exit code of a rank, nor once the launcher or a rank has got a signal that asks to
//             stop, nor where a rank was left that SIGKILL does not end, nor twice in a row in the
//             same step (lib/net/launch/restart_policy.h). Rank 0's stdout is held back until no
//             restart can follow; beyond 64 MiB it is passed on, and none follows. On several hosts
//             the launchers agree (lib/net/launch/host_agreement.h): all restart or none. One that was
//             killed may be started again while the others wait for it. With min_hosts they go on without it
//             after join_timeout, or after 1 s where the ranks keep replicas (replica_dir); it, or
//             another host, then takes part from the next step on, for which the ranks save, end and
//             start again.
//   Orphans   no rank outlives the launcher, however that ends.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "lib/base/environment.h"
#include "lib/net/identity/identity.h"
#include "lib/net/socket/socket.h"

namespace gxp {

struct HeldPart;  // held_parts.h

struct LaunchOptions {
  int nproc = 1;                  // ranks on this host; the same number on every host
  std::vector<std::string> argv;  // of the ranks, with argv[0]; must not ask to launch again
  int host_count = 1;
  int min_hosts = 0;   // with fewer, down to so many, the job goes on; 0: with none
  int host_index = 0;  // of this host: its ranks follow the former's
  Endpoint master = {"", kDefaultMasterPort};  // rank 0's host; unused on one host
  bool bind = true;  // to CPUs, where there are enough or ranks can share them evenly
  // Of a signal that is sent to the launcher twice, or to the ranks and the launcher.
  std::chrono::milliseconds same_signal_within{500};
  std::chrono::milliseconds terminate_after{2000};
  std::chrono::milliseconds kill_after{4000};
  std::chrono::milliseconds stopped_after{120000};
  std::chrono::milliseconds leave_after{30000};  // a driver may take long to free a GPU's memory
  int max_restarts = 0;                          // the same number on every host
  // With several hosts and max_restarts:
  std::chrono::milliseconds join_timeout{60000};  // for the launchers of all hosts to come
  PortRange ports{};                              // for rank 0 to be found at; none: any
  // Whether so many ranks can share the run's work; with min_hosts.
  std::function<bool(int ranks)> accepts = [](int) { return true; };
  // Where a directory for the replicas of this host's ranks is made (host_memory.h); "": nowhere.
  std::string replica_dir{};
  // What is there, whole, in such a directory; none: not known. May throw an Error.
  std::function<std::vector<HeldPart>(const std::string& directory)> held_parts{};
  // The step of the newest checkpoint, 0 without one; asked after an attempt. May throw an Error.
  std::function<int64_t()> saved_step = [] { return int64_t{0}; };

  [[nodiscard]] int least_hosts() const { return min_hosts > 0 ? min_hosts : host_count; }
};

// Runs the ranks until all have ended. Returns 0 if all did well (4 if stdout has not taken the
// results), 128 + N if signal N, passed on to them or sent to them and this process, ended them or
// made them end with that code, 5 if another signal killed one, else the exit code of the rank that
// failed first, where code 5 (a lost peer) counts as a consequence if another rank has another
// failure; of restarted ranks the last attempt counts. Logs which rank it was. To be called from the
// main thread of a process with no other threads, with process_environment() or a changed copy.
// Throws kConfig if the master is missing or the secret is unusable, kIo if a process cannot be
// started (those already started are killed).
int launch(const LaunchOptions& options, const Environment& environment);

}  // namespace gxp
