// The tree in which all layout-invariant algorithms combine ranks.
//
// For any world size p: let c be the largest power of two <= p and e = p - c. The first e pairs of
// neighbours (0, 1), (2, 3), ... act as one core rank each, for which the even one works. So there
// are c core ranks, and core rank i stands for the chunks of its members, which lie side by side.
// With y[i] = x[2i] + x[2i+1] for i < e and y[i] = x[i+e] otherwise, the sum of all is y[0] if
// c = 1, else that of the c/2 values y[2i] + y[2i+1], recursively. No position, count or owner
// occurs in it. Neighbours come first: so the sum over p = 2^k * q ranks is the one over q groups
// of 2^k neighbours, each group summed alone, and what is largest travels between neighbours.
#pragma once

#include <algorithm>
#include <bit>

#include "lib/collective/algorithm/algorithm.h"

namespace gxp {

// The core ranks, seen from one rank.
class CoreRanks {
 public:
  CoreRanks(int rank, int world_size)
      : size_(int(std::bit_floor(unsigned(world_size)))),
        pairs_(world_size - size_),
        rank_(rank),
        index_(rank < 2 * pairs_ ? rank / 2 : rank - pairs_) {}

  [[nodiscard]] int size() const { return size_; }  // c
  [[nodiscard]] int log2_size() const { return std::countr_zero(unsigned(size_)); }
  [[nodiscard]] int pairs() const { return pairs_; }  // e
  [[nodiscard]] int index() const { return index_; }
  [[nodiscard]] bool is_paired() const { return rank_ < 2 * pairs_; }
  [[nodiscard]] bool is_active() const { return !is_paired() || rank_ % 2 == 0; }
  [[nodiscard]] int neighbour() const { return rank_ ^ 1; }  // the other member of the pair
  // The rank that works for core rank `index`; for index == size() the end.
  [[nodiscard]] int rank_at(int index) const { return index + std::min(index, pairs_); }

 private:
  int size_;
  int pairs_;
  int rank_;
  int index_;
};

// Folds the versions of a range that `rank` holds, one of each rank, into its own in that tree.
// version_of(rank) is where that rank's version lies.
template <class VersionOf>
void fold_versions(Primitives& comm, const VersionOf& version_of) {
  const CoreRanks core(comm.rank(), comm.world_size());
  for (int i = 0; i < core.pairs(); ++i) {
    const bool odd_stays = comm.rank() == 2 * i + 1;
    comm.fold(version_of(odd_stays ? 2 * i : 2 * i + 1), version_of(odd_stays ? 2 * i + 1 : 2 * i));
  }
  // The sum over `width` core ranks from i on lies with core rank i, or with this one if it is one
  // of them.
  const auto is_own = [&](int i, int width) { return core.index() / width * width == i; };
  const auto place_of = [&](int i, int width) {
    return version_of(is_own(i, width) ? comm.rank() : core.rank_at(i));
  };
  for (int width = 1; width < core.size(); width *= 2) {
    for (int i = 0; i < core.size(); i += 2 * width) {
      const bool upper_stays = is_own(i + width, width);
      const Range lower = place_of(i, width);
      const Range upper = place_of(i + width, width);
      comm.fold(upper_stays ? lower : upper, upper_stays ? upper : lower);
    }
  }
}

}  // namespace gxp
