// How the launchers of a job's hosts agree, before and after each attempt, on what follows.
//
// Each launcher reports; that of host 0 decides for all, so that no two hosts are in different
// attempts. A launcher that was killed comes back as one that has just been started: the others wait
// for it, and tell it which attempt comes next. They meet at a store (store.h) of host 0's launcher,
// at LaunchOptions::master, and prove that they know the job's secret.
//
// Where fewer hosts will do (HostRules::least), those that are there go on without one that does not
// come back; and host 0 keeps the next meeting open while ranks run: who comes then waits there,
// and may have the ranks stopped and started again with it. Who waits, but holds what the others
// lack of a replica, gives it to host 0 (held_parts.h).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "lib/base/deadline.h"
#include "lib/base/environment.h"
#include "lib/net/launch/held_parts.h"
#include "lib/net/launch/launcher.h"
#include "lib/net/launch/restart_policy.h"
#include "lib/net/socket/secret.h"
#include "lib/net/store/store_server.h"

namespace gxp {

// What a launcher tells.
struct HostReport {
  int host = 0;       // LaunchOptions::host_index
  std::string job{};  // "": the launcher has just been started, or has had no ranks yet
  int attempt = 0;    // that has ended; the first is 0
  int restarts = 0;
  int max_restarts = 0;
  bool succeeded = false;
  bool may_restart = false;  // the ranks here have failed, and another attempt may do better
  bool paused = false;    // they have saved and ended, as the launcher of host 0 has asked them to
  std::string failure{};  // of the rank here that is to blame
  bool was_killed = false;  // that rank, by a signal
  bool from_outside = false;
  // By the launcher of rank 0:
  bool has_paused = false;  // has asked
  int64_t step = 0;         // RestartPolicy::Failure's
  int64_t saved = 0;        // likewise
  int64_t replicated = 0;   // JobProgress's
  bool owns_directories = false;
  std::vector<std::string> held{};  // facts of HeldParts in this host's memory

  auto fields() {
    return std::tie(host, job, attempt, restarts, max_restarts, succeeded, may_restart, paused,
                    failure, was_killed, from_outside, has_paused, step, saved, replicated,
                    owns_directories, held);
  }
};

struct HostDecision {
  bool starts = false;               // another attempt
  std::string job{};                 // whose
  int attempt = 0;                   // its number
  int restarts = 0;                  // so far, of those that count
  std::vector<std::string> hosts{};  // their numbers, in order of the ranks; the others wait
  int port = 0;                      // of the ranks' store, on host 0
  bool failed = false;               // the job has ended, and not well
  std::string text{};                // for the log, if there is something to tell

  auto fields() { return std::tie(starts, job, attempt, restarts, hosts, port, failed, text); }
};

// How many hosts there may be.
struct HostRules {
  int least = 1;
  std::function<bool(int hosts)> accepts = [](int) { return true; };
  std::vector<int> last{};  // that have taken part in the last attempt, as far as host 0 knows
};

// The first of `here` that are as many as the rules allow; none if that is no number. Pure.
std::vector<int> choose_hosts(std::span<const int> here, const HostRules& rules);

// Pure but for the policy, which is host 0's. `reports` are in order of host, the first host 0's.
// `new_job` names the job if all launchers have just been started.
HostDecision decide(std::span<const HostReport> reports, RestartPolicy& policy,
                    const std::string& new_job, const HostRules& rules);

// One launcher's side of the meetings. Threads: one at a time.
class HostMeetings {
 public:
  using Decide = std::function<HostDecision(std::span<const HostReport>)>;

  // `memory`: the directory of this host's replicas, "" without one. kConfig: as launch().
  HostMeetings(const LaunchOptions& options, const Environment& environment, std::string memory);

  // [collective over the launchers] Returns what host 0's launcher has decided. That one waits until
  // the deadline for the hosts in `expected`, and then needs all hosts, unless fewer will do; the
  // others wait until the deadline for it to listen, then as long as it does. Tries again if a
  // launcher ends meanwhile. kPeer: one does not come.
  HostDecision agree(const HostReport& mine, std::span<const int> expected, const Decide& decide,
                     std::chrono::milliseconds patience);

  // On host 0: lets others come to the next meeting from now on. kIo: the port is taken.
  void open();
  // Whether the last meeting has left a host without ranks.
  [[nodiscard]] bool has_spares() const { return !spares_.empty(); }
  // Who has come; none on other hosts.
  [[nodiscard]] std::vector<int> waiting() const;

 private:
  HostDecision lead(const HostReport& mine, std::span<const int> expected, const Decide& decide,
                    Deadline deadline);
  HostDecision follow(const HostReport& mine, Deadline deadline, bool& met) const;
  [[nodiscard]] std::string take_parts(Store& store, std::span<const FilesToGive> to_give) const;
  void give_parts(Store& store, std::string_view asked) const;

  const LaunchOptions& options_;
  const std::string memory_;
  const Secret secret_;
  std::unique_ptr<StoreServer> server_;  // of host 0, while it is open
  std::vector<int> spares_{};            // on host 0: hosts without ranks after the last meeting
};

}  // namespace gxp
