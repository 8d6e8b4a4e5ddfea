#include "lib/topo/plan/double_binary_tree.h"

#include <algorithm>
#include <bit>

#include "tests/catch.h"

namespace gxp {

TEST_CASE("in each of the two trees every member hangs on one parent, and is inner in one at most",
          "[topo]") {
  const int size = GENERATE(range(1, 130));
  const DoubleBinaryTree trees(size);
  bool parents_know_children = true;
  bool leaf_in_one = true;
  int deepest = 0;
  for (int member = 1; member < size; ++member) {
    int inner = 0;
    for (const int tree : {0, 1}) {
      const int parent = trees.parent(tree, member);
      const auto siblings = trees.children(tree, parent);
      parents_know_children &= std::ranges::count(siblings, member) == 1;
      parents_know_children &= trees.depth(tree, member) > trees.depth(tree, parent);
      inner += trees.children(tree, member) == std::array{0, 0} ? 0 : 1;
      deepest = std::max(deepest, trees.depth(tree, member));
    }
    leaf_in_one &= inner <= 1;
  }
  CAPTURE(size);
  CHECK(parents_know_children);
  CHECK(leaf_in_one);
  CHECK(deepest == trees.height());
  CHECK(trees.height() == int(std::bit_width(unsigned(size - 1))));
}

}  // namespace gxp
