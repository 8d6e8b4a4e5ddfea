// How the launchers of a job's hosts agree, before and after each attempt, on what follows.
//
// Each launcher reports; that of host 0 decides for all, so that no two hosts are in different
// attempts. A launcher that was killed comes back as one that has just been started: the others wait
// for it, and tell it which attempt comes next. They meet at a store (store.h) of host 0's launcher,
// at LaunchOptions::master, and prove that they know the job's secret.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <tuple>

#include "lib/base/deadline.h"
#include "lib/base/environment.h"
#include "lib/net/launch/launcher.h"
#include "lib/net/launch/restart_policy.h"

namespace gxp {

// What a launcher tells.
struct HostReport {
  std::string job;  // "": the launcher has just been started
  int attempt = 0;  // that has ended; the first is 0
  int max_restarts = 0;
  bool succeeded = false;
  bool may_restart = false;  // the ranks here have failed, and another attempt may do better
  std::string failure;       // of the rank here that is to blame
  bool was_killed = false;   // that rank, by a signal
  bool from_outside = false;
  // By the launcher of rank 0:
  int64_t step = 0;   // RestartPolicy::Failure's
  int64_t saved = 0;  // likewise
  bool owns_directories = false;

  auto fields() {
    return std::tie(job, attempt, max_restarts, succeeded, may_restart, failure, was_killed,
                    from_outside, step, saved, owns_directories);
  }
};

struct HostDecision {
  bool starts = false;  // another attempt
  std::string job;      // whose
  int attempt = 0;      // its number
  int port = 0;         // of the ranks' store, on host 0
  std::string text;     // for the log, if there is something to tell

  auto fields() { return std::tie(starts, job, attempt, port, text); }
};

// Pure but for the policy, which is host 0's. `reports` are in order of host. `new_job` names the job if
// all launchers have just been started.
HostDecision decide(std::span<const HostReport> reports, RestartPolicy& policy,
                    const std::string& new_job);

// [collective over the launchers] Returns what host 0's launcher has decided. Tries again until the
// deadline if a launcher ends meanwhile. kPeer: one does not come; kConfig as launch().
HostDecision agree(const LaunchOptions& options, const Environment& environment,
                   const HostReport& mine,
                   const std::function<HostDecision(std::span<const HostReport>)>& decide,
                   Deadline deadline);

}  // namespace gxp
