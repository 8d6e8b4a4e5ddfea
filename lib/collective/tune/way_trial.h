// Which of several ways of a call is the fastest where it is used, learnt from the calls
// themselves. What ranks measured when they met, or in a calibration, was measured in other pages
// and at another moment; and where a host moves its virtual CPUs, the same way may later take five
// times as long. All ways give the same bits.
//   Round   each way is taken four times in a row and its last call is timed, since the first find
//           the caches as another way has left them. Three rounds come first, then one in every
//           512 calls.
//   Else    the way with the lowest median of its last three times is taken.
// Pure: ranks that note the same times take the same ways.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "lib/collective/tune/shared_ways.h"

namespace gxp {

class WayTrial {
 public:
  struct Turn {
    SharedWay way;
    bool timed;  // note() wants to know what the call takes
  };

  // One way or more, the one that was predicted to be the fastest first.
  explicit WayTrial(const std::vector<SharedWay>& ways);

  // Of the next call.
  [[nodiscard]] Turn turn() const;
  // The call was made.
  void advance() { ++calls_; }
  // What a call took the slowest rank, by byte, since calls of a trial may differ in size.
  void note(SharedWay way, double seconds_per_byte);
  // The predicted way until all were timed.
  [[nodiscard]] SharedWay fastest() const;

 private:
  static constexpr uint32_t kInARow = 4;
  static constexpr uint32_t kFirstRounds = 3;
  static constexpr uint32_t kPeriod = 512;  // calls
  struct Candidate {
    SharedWay way;
    std::array<double, 3> last{};  // a ring
    size_t noted = 0;
    [[nodiscard]] double median() const;
  };

  std::vector<Candidate> candidates_;
  uint32_t calls_ = 0;
};

}  // namespace gxp
