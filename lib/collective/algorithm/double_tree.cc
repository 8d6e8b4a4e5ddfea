#include "lib/collective/algorithm/double_tree.h"

#include <algorithm>
#include <array>
#include <bit>

#include "lib/topo/plan/double_binary_tree.h"

namespace gxp {
namespace {

// One of the two trees with its half of the buffer, seen from one rank.
class OneTree {
 public:
  OneTree(int rank, const CallShape& shape, int half)
      : world_size_(shape.world_size),
        root_(shape.root),
        index_(half),
        half_(Chunks(shape.count, 2)[half]),
        segment_(shape.segment),
        trees_(shape.world_size),
        member_((rank + world_size_ - root_) % world_size_) {}

  [[nodiscard]] bool is_root() const { return member_ == 0; }
  [[nodiscard]] int depth() const { return trees_.depth(index_, member_); }
  [[nodiscard]] int height() const { return trees_.height(); }
  [[nodiscard]] size_t count() const { return half_.count; }
  [[nodiscard]] int parent() const { return rank_of(trees_.parent(index_, member_)); }
  template <class Act>
  void for_each_child(const Act& act) const {
    for (const int child : trees_.children(index_, member_)) {
      if (child != 0) act(rank_of(child));
    }
  }
  // At least one, which may be empty.
  [[nodiscard]] int64_t segments() const {
    if (segment_ == 0 || half_.count == 0) return 1;
    return static_cast<int64_t>((half_.count - 1) / segment_ + 1);
  }
  [[nodiscard]] Range segment(int64_t index) const {
    if (segment_ == 0) return half_;
    const size_t offset = std::min(half_.count, size_t(index) * segment_);
    return {half_.begin + offset, std::min(segment_, half_.count - offset)};
  }

 private:
  // Members count from the root.
  [[nodiscard]] int rank_of(int member) const { return (member + root_) % world_size_; }

  int world_size_;
  int root_;
  int index_;
  Range half_;
  size_t segment_;
  DoubleBinaryTree trees_;
  int member_;
};

// Both trees, seen from one rank, with the steps in which their segments are due.
class DoubleTree {
 public:
  DoubleTree(int rank, const CallShape& shape)
      : trees_{OneTree(rank, shape, 0), OneTree(rank, shape, 1)} {}
  [[nodiscard]] const std::array<OneTree, 2>& trees() const { return trees_; }

  // Calls act(tree, segment) in the order in which segments come down to this rank.
  template <class Act>
  void for_each_on_the_way_down(const Act& act) const {
    for_each_due([](const OneTree& tree) { return tree.depth(); }, act);
  }
  template <class Act>
  void for_each_on_the_way_up(const Act& act) const {
    for_each_due([](const OneTree& tree) { return tree.height() - tree.depth(); }, act);
  }

 private:
  template <class Delay, class Act>
  void for_each_due(const Delay& delay, const Act& act) const {
    const int64_t segments = trees_[0].segments();  // the other half is no longer
    for (int64_t step = 0; step < segments + trees_[0].height(); ++step) {
      for (const OneTree& tree : trees_) {
        const int64_t due = step - delay(tree);
        if (0 <= due && due < segments) act(tree, tree.segment(due));
      }
    }
  }

  std::array<OneTree, 2> trees_;
};

// Rounds that all segments but the first take.
int rounds_behind_the_first(const CallShape& shape) {
  return int(2 * (OneTree(0, shape, 0).segments() - 1));
}

}  // namespace

void double_tree_broadcast(Primitives& comm, const CallShape& shape) {
  const DoubleTree both(comm.rank(), shape);
  both.for_each_on_the_way_down([&](const OneTree& tree, Range segment) {
    if (!tree.is_root()) comm.recv(tree.parent(), segment);
    tree.for_each_child([&](int child) { comm.send(child, segment); });
  });
}

void double_tree_reduce(Primitives& comm, const CallShape& shape) {
  const DoubleTree both(comm.rank(), shape);
  both.for_each_on_the_way_up([&](const OneTree& tree, Range segment) {
    tree.for_each_child([&](int child) { comm.recv_and_fold(child, segment); });
    if (!tree.is_root()) comm.send(tree.parent(), segment);
  });
}

void double_tree_all_reduce(Primitives& comm, const CallShape& shape) {
  double_tree_reduce(comm, shape);
  double_tree_broadcast(comm, shape);
}

int double_tree_broadcast_rounds(const CallShape& shape) {
  if (shape.world_size == 1) return 0;
  const auto p = unsigned(shape.world_size);
  const int first = std::bit_width(p) - 1 + std::bit_width(p - 1);  // log2 p down and up
  return first + rounds_behind_the_first(shape);
}

int double_tree_reduce_rounds(const CallShape& shape) {
  if (shape.world_size == 1) return 0;
  const auto below = unsigned(shape.world_size - 1);
  // One less if the last of them is alone on the lowest level.
  const int first = 2 * std::bit_width(below) - (below > 1 && std::has_single_bit(below) ? 1 : 0);
  return first + rounds_behind_the_first(shape);
}

int double_tree_all_reduce_rounds(const CallShape& shape) {
  return double_tree_reduce_rounds(shape) + double_tree_broadcast_rounds(shape);
}

}  // namespace gxp
