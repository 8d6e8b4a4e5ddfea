// Which of several methods of a call is the fastest where it is used, learnt from the calls
// themselves. What ranks measured when they were tuned, or calibrated, was measured in other pages
// and at another moment; and where a host moves its virtual CPUs, the same method may later take
// five times as long. All methods give the same bits.
//   Round   each method is taken some times in a row and its last call is timed, since the first
//           find the caches as another method has left them. At most three rounds come first, each
//           only of the methods that are not clearly slower; then one of all methods after every
//           512 calls.
//   Else    the method with the lowest median of its last three times is taken.
// Pure: ranks that note the same times take the same methods.
#pragma once

#include <array>
#include <cstddef>
#include <vector>

#include "lib/collective/tune/shared_methods.h"

namespace gxp {

class MethodTrial {
 public:
  struct Turn {
    SharedMethod method;
    bool timed;  // note() needs the time of the call
  };

  // One method or more, the one that was predicted to be the fastest first, for calls of about so
  // many bytes.
  MethodTrial(const std::vector<SharedMethod>& methods, size_t bytes);

  // The method of the next call, and whether it is to be timed.
  [[nodiscard]] Turn turn() const;
  // Goes on to the next call.
  void advance();
  // Notes the time of a call on the slowest rank, per byte, since the calls of a trial may differ
  // in size.
  void note(SharedMethod method, double seconds_per_byte);
  // Whether the next call belongs to no round and uses this method.
  [[nodiscard]] bool is_settled_on(SharedMethod method) const;
  // The predicted method until all were timed.
  [[nodiscard]] SharedMethod fastest() const;

 private:
  struct Candidate {
    SharedMethod method;
    std::array<double, 3> last{};  // a ring
    size_t noted = 0;
    [[nodiscard]] double median() const;  // of two, the lower
  };
  [[nodiscard]] const Candidate& best() const;
  void start_round();

  std::vector<Candidate> candidates_;
  int in_a_row_;
  int first_rounds_;        // that are left
  std::vector<int> round_;  // the candidates that it takes; empty: none runs
  int call_ = 0;            // of the round, or since it
};

}  // namespace gxp
