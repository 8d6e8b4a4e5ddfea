// The shape of two binary trees over the same members: Sanders, Speck & Traeff, Parallel Computing
// 35(12), 2009. Member 0 is the root on top of both; below it each is an in-order binary tree of
// the others, the second one the first mirrored (or shifted by one, if their number is odd). So no
// member has children in both: the inner member of one is a leaf of the other.
#pragma once

#include <array>

namespace gxp {

class DoubleBinaryTree {
 public:
  // Members 0 .. size - 1.
  explicit DoubleBinaryTree(int size) : size_(size), below_(size - 1) {}

  // `tree` is 0 or 1. Depths count from 0 for the root; height() is the greatest depth.
  [[nodiscard]] int height() const { return below_.height(); }
  [[nodiscard]] int depth(int tree, int member) const {
    return below_.depth(position_of(tree, member));
  }
  // Precondition: member > 0.
  [[nodiscard]] int parent(int tree, int member) const {
    return member_at(tree, below_.parent(position_of(tree, member)));
  }
  // 0 where there is none.
  [[nodiscard]] std::array<int, 2> children(int tree, int member) const {
    std::array<int, 2> members = below_.children(position_of(tree, member));
    for (int& child : members) child = child == 0 ? 0 : member_at(tree, child);
    return members;
  }

 private:
  // An in-order binary tree of positions 1 .. size: the lowest set bit of a position is its height
  // above the leaves, so leaves are odd. Position 0 is the root above it.
  class InOrderTree {
   public:
    explicit InOrderTree(int size) : size_(size) {}
    [[nodiscard]] int height() const;
    // Children of a truncated tree may be several levels lower.
    [[nodiscard]] int depth(int position) const;
    [[nodiscard]] int parent(int position) const;
    [[nodiscard]] std::array<int, 2> children(int position) const;

   private:
    [[nodiscard]] int top() const;
    int size_;
  };

  // Mirroring makes odd positions even ones; with an odd number of them shifting does.
  [[nodiscard]] int position_of(int tree, int member) const;
  [[nodiscard]] int member_at(int tree, int position) const;

  int size_;
  InOrderTree below_;
};

}  // namespace gxp
