#include "lib/topo/plan/double_binary_tree.h"

#include <bit>

namespace gxp {

int DoubleBinaryTree::InOrderTree::height() const {
  return std::bit_width(static_cast<unsigned>(size_));
}

int DoubleBinaryTree::InOrderTree::depth(int position) const {
  if (position == 0) return 0;
  return height() - std::countr_zero(static_cast<unsigned>(position));
}

int DoubleBinaryTree::InOrderTree::top() const {
  return static_cast<int>(std::bit_floor(static_cast<unsigned>(size_)));
}

int DoubleBinaryTree::InOrderTree::parent(int position) const {
  if (position == top()) return 0;
  do {
    const int bit = position & -position;
    position = (position ^ bit) | (bit << 1);
  } while (position > size_);
  return position;
}

std::array<int, 2> DoubleBinaryTree::InOrderTree::children(int position) const {
  if (position == 0) return {top(), 0};  // which is 0 for an empty tree
  int bit = (position & -position) / 2;
  const int left = bit == 0 ? 0 : position - bit;
  while (position + bit > size_) bit /= 2;
  return {left, bit == 0 ? 0 : position + bit};
}

int DoubleBinaryTree::position_of(int tree, int member) const {
  if (tree == 0 || member == 0) return member;
  const int below = size_ - 1;
  return below % 2 == 0 ? below + 1 - member : member % below + 1;
}

int DoubleBinaryTree::member_at(int tree, int position) const {
  if (tree == 0 || position == 0) return position;
  const int below = size_ - 1;
  return below % 2 == 0 ? below + 1 - position : (position + below - 2) % below + 1;
}

}  // namespace gxp
