// When the steps of a schedule happen: replays them without bytes, as a transport would, for any
// number of ranks. Time is counted in rounds of the one-port model: in a round a rank sends one
// message and receives one, and what it sends leaves after all that it has received in earlier
// steps. Messages match by their order between two ranks, so one replay represents all.
#pragma once

#include <string>
#include <vector>

#include "lib/collective/algorithm/schedule.h"

namespace gxp {

struct Message {
  int from = kNobody;
  int to = kNobody;
  size_t send_step = 0;  // of `from`
  size_t recv_step = 0;  // of `to`
  int send_round = 0;    // from 1
  int recv_round = 0;    // >= send_round; 0: never received
};

// A step's message leaves, or its elements arrive: a message's, or for a local step the rank's own.
struct StepEvent {
  enum class Kind { kSend, kReceive, kMove };
  Kind kind;
  int rank;
  size_t step;
  size_t message = 0;  // sent or received
};

struct OnePortReplay {
  std::vector<Message> messages;  // in the order of sending
  std::vector<StepEvent> events;  // in an order in which they can happen
  std::vector<std::string>
      problems;  // ranks that wait for ever, messages never received or not as sent
};

// Peers must exist.
OnePortReplay replay_one_port(const Schedule& schedule);

// "rank 3 step 5 (send [0, 4) to 1): "
std::string where(const Schedule& schedule, int rank, size_t step);

}  // namespace gxp
