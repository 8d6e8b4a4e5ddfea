// The collective algorithms: one table, each row a pure function over Primitives with the formulas
// that the verifier holds it against.
//
// Association. A reduction's bits depend on the order in which ranks are combined. fold() is
// commutative in bits, but for the payload of a NaN and for the sign of a zero in min and max, so
// that order is a tree with unordered children. An algorithm is layout-invariant if this tree is
// the same for every element, whatever its position, the buffer's size and the rank that ends up
// with it; then, with that exception, buckets may be cut anywhere, and all-reduce and
// reduce-scatter agree in every bit. halving-doubling is, ring is not; their headers give the
// trees.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "lib/collective/primitives.h"

namespace gxp {

enum class Collective : uint8_t { kAllReduce, kReduceScatter, kAllGather, kBroadcast, kBarrier };

std::string_view to_string(Collective collective);  // "all-reduce"

// `count` elements cut into world_size chunks; the first count % world_size are one longer.
class Chunks {
 public:
  Chunks(size_t count, int world_size) : count_(count), world_size_(world_size) {}
  // The index is taken modulo world_size, so rank - 1 - step needs no care.
  [[nodiscard]] Range operator[](int index) const;
  // Chunks first .. last - 1 as one range; 0 <= first <= last <= world_size.
  [[nodiscard]] Range span(int first, int last) const;

 private:
  [[nodiscard]] size_t begin_of(int index) const;
  size_t count_;
  int world_size_;
};

struct Algorithm {
  std::string_view name;
  Collective collective;
  bool layout_invariant;                             // true also where nothing is reduced
  void (*run)(Primitives&, size_t count, int root);  // root: broadcast only
  // Rounds of the one-port model: in a round a rank sends one message and receives one.
  int (*rounds)(int world_size);
  // Elements that `rank` sends.
  uint64_t (*elements_sent)(int rank, int world_size, size_t count, int root);
};

// In order of preference.
std::span<const Algorithm> algorithms();

// Null if there is none of that name for that collective.
const Algorithm* find_algorithm(std::string_view name, Collective collective);

}  // namespace gxp
