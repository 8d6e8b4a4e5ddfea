// The primitives of collective algorithms.
//
// An algorithm is a function over Primitives whose control flow depends only on rank, world size,
// counts and hosts. It names elements of one logical buffer by Range and never sees memory, so the
// same function is executed (executor.h), written down (schedule.h), proved (by the tests'
// verifier.h) and timed (simulator.h). Elements [0, count) are the caller's; an algorithm that
// declares scratch (algorithm.h) may use that many more elements after them.
//
// A step sends, receives, does both, or moves elements within the rank:
//   Sending    starts without waiting for the peer; the elements are sent with their values at that
//              moment.
//   Receiving  ends the step when the elements have arrived. Messages between two ranks arrive in
//              the order in which they were sent, with the sender's count.
//   Overlap    the ranges that a step receives and sends may not overlap. A received range may
//              overlap one that an earlier step sent: the step then waits until it has been taken.
//   Empty      ranges are allowed; no message is sent and no rank waits.
#pragma once

#include "lib/base/range.h"

namespace gxp {

inline bool overlap(Range a, Range b) {
  return a.begin < b.end() && b.begin < a.end() && a.count > 0 && b.count > 0;
}

inline constexpr int kNobody = -1;

// One call of a primitive, as data. A token is a message without elements: it only orders ranks.
struct CollectiveStep {
  int to = kNobody;
  Range leaving{};
  int from = kNobody;
  Range into{};
  bool fold = false;  // fold the received elements into the present ones instead of storing them
  bool token = false;
  bool local = false;  // no peers: `leaving` is copied to, or folded into, `into`
  bool operator==(const CollectiveStep&) const = default;
};

class Primitives {
 public:
  Primitives() = default;
  Primitives(const Primitives&) = delete;
  Primitives& operator=(const Primitives&) = delete;
  virtual ~Primitives() = default;
  [[nodiscard]] virtual int rank() const = 0;
  [[nodiscard]] virtual int world_size() const = 0;

  void send(int to, Range leaving) { run({.to = to, .leaving = leaving}); }
  void recv(int from, Range into) { run({.from = from, .into = into}); }
  void recv_and_fold(int from, Range into) { run({.from = from, .into = into, .fold = true}); }
  void send_and_recv(int to, Range leaving, int from, Range into) {
    run({.to = to, .leaving = leaving, .from = from, .into = into});
  }
  void send_and_fold(int to, Range leaving, int from, Range into) {
    run({.to = to, .leaving = leaving, .from = from, .into = into, .fold = true});
  }
  void copy(Range from, Range into) { run({.leaving = from, .into = into, .local = true}); }
  // into[i] = into[i] op from[i].
  void fold(Range from, Range into) {
    run({.leaving = from, .into = into, .fold = true, .local = true});
  }
  void send_and_recv_token(int to, int from) { run({.to = to, .from = from, .token = true}); }

 protected:
  friend class RankSubset;  // passes steps on
  virtual void run(const CollectiveStep& step) = 0;
};

}  // namespace gxp
