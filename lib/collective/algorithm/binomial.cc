#include "lib/collective/algorithm/binomial.h"

#include <algorithm>
#include <bit>

#include "lib/collective/algorithm/reduction_tree.h"

namespace gxp {
namespace {

// The tree, seen from one rank.
class Tree {
 public:
  Tree(int rank, const CallShape& shape)
      : world_size_(shape.world_size),
        root_(shape.root),
        number_((rank + shape.world_size - shape.root) % shape.world_size),
        chunks_(shape) {}

  [[nodiscard]] bool is_root() const { return number_ == 0; }
  [[nodiscard]] int number() const { return number_; }
  [[nodiscard]] int parent() const { return number_ & (number_ - 1); }
  [[nodiscard]] int rank_of(int number) const { return (number + root_) % world_size_; }
  // Children are number() + 2^i for i < children().
  [[nodiscard]] int children() const {
    const auto behind = unsigned(world_size_ - 1 - number_);
    return std::min<int>(std::bit_width(behind), free_bits(number_));
  }
  [[nodiscard]] int child(int i) const { return number_ + (1 << i); }

  // Whether the ranks of the own subtree wrap around behind the last rank.
  [[nodiscard]] bool wraps() const { return end_of(number_) > world_size_; }
  // Calls act(range) for the chunks of the subtree of `number`: twice if it wraps around.
  template <class Act>
  void for_each_run(int number, const Act& act) const {
    const int end = end_of(number);
    act(chunks_.span(rank_of(number), std::min(end, world_size_)));
    if (end > world_size_) act(chunks_.span(0, end - world_size_));
  }

 private:
  // The end of the ranks of that subtree, not wrapped.
  [[nodiscard]] int end_of(int number) const {
    return rank_of(number) + std::min(1 << free_bits(number), world_size_ - number);
  }
  // Bits below the lowest one that is set; those of the whole tree for the root.
  [[nodiscard]] int free_bits(int number) const {
    return number == 0 ? std::bit_width(unsigned(world_size_ - 1))
                       : std::countr_zero(unsigned(number));
  }

  int world_size_;
  int root_;
  int number_;
  Chunks chunks_;
};

}  // namespace

void binomial_broadcast(Primitives& comm, const CallShape& shape) {
  const Tree tree(comm.rank(), shape);
  const Range all{0, shape.count};
  if (!tree.is_root()) comm.recv(tree.rank_of(tree.parent()), all);
  for (int i = tree.children() - 1; i >= 0; --i) comm.send(tree.rank_of(tree.child(i)), all);
}

void binomial_gather(Primitives& comm, const CallShape& shape) {
  const Tree tree(comm.rank(), shape);
  for (int i = 0; i < tree.children(); ++i) {
    const int child = tree.child(i);
    tree.for_each_run(child, [&](Range run) { comm.recv(tree.rank_of(child), run); });
  }
  if (tree.is_root()) return;
  tree.for_each_run(tree.number(), [&](Range run) { comm.send(tree.rank_of(tree.parent()), run); });
}

void binomial_scatter(Primitives& comm, const CallShape& shape) {
  const Tree tree(comm.rank(), shape);
  if (!tree.is_root()) {
    tree.for_each_run(tree.number(),
                      [&](Range run) { comm.recv(tree.rank_of(tree.parent()), run); });
  }
  for (int i = tree.children() - 1; i >= 0; --i) {
    const int child = tree.child(i);
    tree.for_each_run(child, [&](Range run) { comm.send(tree.rank_of(child), run); });
  }
}

// The core rank that holds the root ends with the sum; of a pair that the root is in, it works.
void binomial_reduce(Primitives& comm, const CallShape& shape) {
  const CoreRanks core(comm.rank(), shape.world_size);
  const CoreRanks root(shape.root, shape.world_size);
  const Range all{0, shape.count};
  const auto rank_at = [&](int i) { return i == root.index() ? shape.root : core.rank_at(i); };
  if (core.is_paired() && comm.rank() != rank_at(core.index())) {
    return comm.send(core.neighbour(), all);
  }
  if (core.is_paired()) comm.recv_and_fold(core.neighbour(), all);
  for (int distance = 1; distance < core.size(); distance *= 2) {
    const int peer = rank_at(core.index() ^ distance);
    if (((core.index() ^ root.index()) & distance) != 0) return comm.send(peer, all);
    comm.recv_and_fold(peer, all);
  }
}

// A rank has its subtree's chunks after a round for each child, and one more for a child whose
// subtree wraps around, or more if that one is late itself. Only the ancestors of the last rank can
// have such a child: from that rank up to the root.
int binomial_chunks_rounds(const CallShape& shape) {
  const int last = shape.world_size - 1;
  int delay = 0;  // by the child that wraps
  for (int number = last - shape.root;; number &= number - 1) {
    const Tree tree((number + shape.root) % shape.world_size, shape);
    const int rounds = tree.children() + delay;
    if (number == 0) return rounds;
    const int bit = std::countr_zero(unsigned(number));
    if (tree.wraps()) delay = 1 + std::max(0, rounds - bit);
  }
}

}  // namespace gxp
