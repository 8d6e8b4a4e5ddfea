// How a command starts its ranks, and how these join their job.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "lib/base/environment.h"
#include "lib/config/run_config.h"
#include "lib/net/identity/identity.h"
#include "lib/net/store/configuration.h"
#include "lib/net/store/verdict.h"

namespace gxp {

class Communicator;
class Device;
class FlightRecorder;
class RankSurvey;
class Transport;
struct CommunicatorOptions;
struct HeldPart;
struct LaunchOptions;
struct Profile;
struct SelectionSettings;

struct LaunchRequest {
  int nproc = 0;             // 0: not given
  int given_nnodes = 0;      // likewise
  int given_node_rank = -1;  // -1: not given
  int min_nnodes = 0;        // with so many the job goes on; 0: not given
  int spares = 0;            // hosts more than given_nnodes, which wait
  int nnodes = 1;            // that take part; by place_host()
  int node_rank = 0;         // likewise
  bool is_host = false;      // a launcher has started this process to start the host's ranks
  std::string master;        // HOST:PORT of rank 0's store
  bool no_bind = false;
  double join_timeout_s = 60;  // until every rank has come
  int max_restarts = 0;
  std::function<bool(int)> accepts;     // LaunchOptions::accepts; with least_nnodes()
  std::function<int64_t()> saved_step;  // as LaunchOptions::saved_step; with max_restarts
  std::string replica_dir;              // likewise LaunchOptions::replica_dir
  std::function<std::vector<HeldPart>(const std::string&)> held_parts;  // and its held_parts
  // Whether launch_ranks() is to start some, unless this process is one of them.
  [[nodiscard]] bool starts_ranks() const {
    return nproc > 1 || all_nodes() > 1 || (max_restarts > 0 && nproc > 0);
  }
  [[nodiscard]] int all_nodes() const { return nnodes + spares; }
  // With so many of nnodes the job goes on; 0: with all.
  [[nodiscard]] int least_nnodes() const {
    return min_nnodes > 0 || spares == 0 ? min_nnodes : given_nnodes;
  }
};

// What the options and the environment (lib/net/identity/host_identity.h) say of this host; to be
// called before the rest. kUsage: they contradict each other. kConfig: as host_identity_from().
void place_host(LaunchRequest& request, const Environment& environment);

// What of it says how many ranks there are and where; without argv. kUsage: the master is
// no HOST:PORT.
LaunchOptions placed_ranks(const LaunchRequest& request);

// Who this process is: identity_of_starter() where it is to start ranks, else identity_from().
RankIdentity identity_for(const LaunchRequest& request, const Environment& environment);

// The command line of this process as the OS has it.
std::vector<std::string> own_argv();

// In a process that the user started with --nproc or --nnodes: starts the ranks as copies of this
// process, waits for them and returns the exit code. In a rank, or without these options: nothing.
// Throws kUsage if another launcher has made this process one of several ranks, the options contradict
// each other, or comm.engine has a launcher of its own.
std::optional<int> launch_ranks(const LaunchRequest& request, const Environment& environment,
                                const CommConfig& comm);

// How the ranks of a job are joined.
struct JobSettings {
  CommConfig comm;
  bool layout_invariant = true;     // of the collectives, see lib/collective/tune/selection.h
  FlatConfiguration configuration;  // must be equal on all ranks
  bool chooses_by_gpus = false;     // comm.engine auto may be NCCL (choose_engine_of_job())
  Device* gpu = nullptr;            // that this rank computes on, and outlives the job; null: none
  // To work over each in turn, in place of comm.transport; for several ranks of the native engine.
  std::vector<std::string> transports{};
  // Of this rank, and outlives the job; null: one of the job's own.
  FlightRecorder* recorder = nullptr;
  // Reaches all ranks while rank 0's store serves them; null: nobody asks. Likewise.
  RankSurvey* survey = nullptr;
  // Set before `work` is called, where there are several hosts: a transport beside the job's, for a
  // thread of its own, as long as the job lasts. It joins each rank and that of the same number on the
  // next host. Null: none is wanted.
  Transport** second_transport = nullptr;
  // Called once the job has failed, on a thread of the store's, before waits are interrupted.
  std::function<void(const FailureVerdict&)> on_verdict{};
};

// kConfig: the algorithm's name.
SelectionSettings selection_of(const JobSettings& settings);
CommunicatorOptions communicator_options(const JobSettings& settings, Profile profile);

// Checks a job's settings before ranks are started. kConfig as communicator_options(); kIo and
// kCorrupt: the profile's file.
void check_job(const JobSettings& settings, const Environment& environment);

// Joins this rank to its job and calls `work`, once for each transport. All ranks use the profile
// that rank 0 finds (find_profile() of comm.profile), so that all choose the same algorithms. A
// failure of `work` or of another rank ends all ranks; the error thrown here then names the first
// cause.
void run_rank(const LaunchRequest& request, const Environment& environment,
              const JobSettings& settings, Device& device,
              const std::function<void(Communicator&)>& work);

}  // namespace gxp
