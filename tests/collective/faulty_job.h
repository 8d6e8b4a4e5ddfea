// A job of four processes in which one rank does something wrong in one call.
#pragma once

#include <sys/types.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "lib/collective/algorithm/algorithm.h"
#include "lib/net/socket/secret.h"
#include "lib/net/socket/socket.h"

namespace gxp {

struct Scene {
  enum class Mishap {
    kNone,
    kSkip,   // the victim calls the next operation instead
    kLate,   // it never calls anything again
    kCount,  // it calls with twice the count
    kStop,   // it is stopped, or
    kKill,   // killed, before it starts message or CMA copy `at` of the call; where tiles are
             // used, when it comes to place `at` of kPlaces in its buffers
  };
  std::string transport;  // or "shm mapped", without CMA
  const Algorithm* algorithm = nullptr;
  Mishap mishap = Mishap::kNone;
  int victim = 0;
  uint64_t at = 0;
  double timeout_s = 0.3;  // of a call
};

std::string_view to_string(Scene::Mishap mishap);  // "is killed"
std::string to_string(const Scene& scene);
inline constexpr uint64_t kPlaces = 8;
// Whether the call sends no messages.
bool in_shared_memory(const Scene& scene);
bool through_tiles(const Scene& scene);

class FaultyJob {
 public:
  static constexpr int kRanks = 4;

  // Starts the processes. No other thread may run.
  explicit FaultyJob(const Scene& scene);
  ~FaultyJob();
  FaultyJob(const FaultyJob&) = delete;
  FaultyJob& operator=(const FaultyJob&) = delete;

  // How a rank ended.
  struct Ending {
    std::atomic<bool> ended;
    double seconds;               // CLOCK_MONOTONIC when it knew
    double late_s;                // behind the deadline of the call that failed
    uint64_t moves;               // messages and copies that it started in the call
    std::array<char, 4096> text;  // what it threw; "": nothing
  };
  // Waits for all but the stopped one.
  const std::array<Ending, kRanks>& finish();
  // "" if each rank that is left has named the victim, in the same words and in time.
  std::string judge();
  // Of the slowest rank, after the deadline or the death.
  [[nodiscard]] double seconds_to_verdict() const;

 private:
  struct Board {  // in memory that all processes see
    std::array<Ending, kRanks> ranks;
    std::atomic<double> struck_s;
  };
  class Striker;
  [[noreturn]] void be_rank(int rank, Fd listener);
  void take_part(int rank, Fd listener);
  void act(int rank, class Communicator& comm, Striker& striker);
  void call(int rank, Communicator& comm, double& entered);
  [[nodiscard]] bool survives(int rank) const;

  Scene scene_;
  Secret secret_ = Secret::generate();
  Endpoint endpoint_;
  Board* board_;
  std::vector<pid_t> processes_;
};

}  // namespace gxp
