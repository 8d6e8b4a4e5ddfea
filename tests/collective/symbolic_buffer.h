// What the elements of one rank's buffer hold, for the verifier: whose contributions to which
// element of the logical buffer, combined by which tree. Equal elements are one stretch, so
// the cost is that of the steps, whatever the counts.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "lib/base/range.h"

namespace gxp {

using RankSet = uint64_t;  // bit r: rank r
inline RankSet only(int rank) { return RankSet{1} << rank; }

struct Content {
  RankSet contributors = 0;  // none: the elements hold nothing
  uint64_t tree = 0;         // names the order in which they were combined
  friend bool operator==(const Content&, const Content&) = default;
};

Content leaf(int rank);
// Children are unordered: fold() is commutative in bits.
uint64_t join(uint64_t a, uint64_t b);

// Elements [begin, begin + count) of a buffer hold `content` for the elements from `origin` on.
struct Stretch {
  Range range;
  size_t origin = 0;
  Content content;
};

class SymbolicBuffer {
 public:
  explicit SymbolicBuffer(size_t size);      // holding nothing
  void place(Range range, Content content);  // for these very elements
  // The stretches of `range`, with its first element as element 0.
  [[nodiscard]] std::vector<Stretch> read(Range range) const;
  // Stores what was read at `begin`.
  void store(std::span<const Stretch> stretches, size_t begin);
  // Folds it into what is there. Returns what is wrong with that, or "".
  [[nodiscard]] std::string fold(std::span<const Stretch> stretches, size_t begin);

 private:
  // The index of the stretch that begins at `begin`; one is cut in two if there is none.
  size_t cut_at(size_t begin);
  // Makes one stretch of each run of equal ones in the stretches first - 1 .. last.
  void merge(size_t first, size_t last);

  std::vector<Stretch> stretches_;  // side by side, from 0 on, none of them empty
  size_t size_;
};

}  // namespace gxp
