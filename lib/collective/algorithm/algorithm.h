// The collective algorithms: one table, each row a pure function over Primitives with the formulas
// that the verifier holds it against.
//
// The logical buffer. Every operation is a function of one buffer of `count` elements on each rank,
// cut into world_size chunks. A rank's data at the start and at the end:
//   all-reduce      all of its own           all, reduced over the ranks
//   reduce-scatter  all of its own           chunk `rank`, reduced
//   reduce          all of its own           root: all, reduced
//   all-gather      chunk `rank`             all chunks
//   broadcast       root: all                all
//   gather          chunk `rank`             root: all chunks
//   scatter         root: all                chunk `rank`
//   all-to-all      all of its own           chunk j is rank j's chunk `rank`; equal chunks only
//   barrier         nothing                  every rank has entered
// Elements that an operation does not define hold anything at the end.
//
// Association. A reduction's bits depend on the order in which ranks are combined. fold() is
// commutative in bits, so that order is a tree with unordered children. An algorithm is
// layout-invariant if this tree is the one of reduction_tree.h, neighbouring ranks first, for
// every element, whatever its position, the buffer's size and the rank that ends up with it. Then
// buckets may be cut anywhere, and all layout-invariant algorithms of all-reduce, reduce-scatter
// and reduce agree in every bit.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "lib/collective/algorithm/primitives.h"

namespace gxp {

struct RankPlan;

enum class Collective : uint8_t {
  kAllReduce,
  kReduceScatter,
  kAllGather,
  kBroadcast,
  kReduce,
  kGather,
  kScatter,
  kAllToAll,
  kBarrier,
};

std::string_view to_string(Collective collective);  // "all-reduce"
std::span<const Collective> collectives();
bool reduces(Collective collective);
bool has_root(Collective collective);
// Broadcast and scatter: ranks take from the root alone.
bool root_gives(Collective collective);

// A plan's facts about the ranks (topo/plan/rank_plan.h, whose vectors it borrows).
struct RankOrders {
  std::span<const int> rings{};   // orders of channels, one after the other, each of all ranks;
                                  // empty: one, by rank
  std::span<const int> groups{};  // what hierarchical algorithms go by: the group of each rank,
                                  // numbered from 0; empty: its host
};
RankOrders orders_of(const RankPlan& plan);

// All that an algorithm's control flow may depend on, but for the rank. The same on every rank.
struct CallShape {
  int world_size = 1;
  size_t count = 0;    // elements of the logical buffer
  int root = 0;        // where the collective has one
  int channels = 1;    // parallel rings
  size_t segment = 0;  // elements that a pipelined tree passes on at a time; 0: all at once
  std::span<const int> hosts{};  // the host of each rank, numbered from 0; empty: all on one
  RankOrders orders{};

  [[nodiscard]] int host_of(int rank) const { return hosts.empty() ? 0 : hosts[size_t(rank)]; }
};

// `count` elements cut into world_size chunks; the first count % world_size are one longer.
class Chunks {
 public:
  Chunks(size_t count, int world_size) : count_(count), world_size_(world_size) {}
  explicit Chunks(const CallShape& shape) : Chunks(shape.count, shape.world_size) {}
  // The index is taken modulo world_size, so rank - 1 - step needs no care.
  [[nodiscard]] Range operator[](int index) const;
  // Chunks first .. last - 1 as one range; 0 <= first <= last <= world_size.
  [[nodiscard]] Range span(int first, int last) const;

 private:
  [[nodiscard]] size_t begin_of(int index) const;
  size_t count_;
  int world_size_;
};

// Parameters of a schedule besides rank, world size, count and root. A CallShape may hold more
// than its algorithm uses.
struct ShapeUses {
  bool hosts = false;     // CallShape::hosts, or the plan's groups
  bool channels = false;  // CallShape::channels, and the plan's rings
  bool segments = false;  // CallShape::segment
};

// How the ranks' data travel where the ranks share memory.
enum class Medium : uint8_t {
  kMessages,
  kSharedMemory,  // no messages (engine/shared_memory/) where memory is shared, else messages
};

struct AlgorithmTraits {
  bool layout_invariant = true;  // also where nothing is reduced
  // Elements that `rank` sends, where to count them (elements_sent()) takes more than some log2(p)
  // steps at most ranks; null: they are counted.
  uint64_t (*sent)(int rank, const CallShape&) = nullptr;
  // Additional elements that `rank` needs after `count`; null: none.
  size_t (*scratch)(int rank, const CallShape&) = nullptr;
  ShapeUses uses{};
  Medium medium = Medium::kMessages;
};

struct Algorithm : AlgorithmTraits {
  std::string_view name;
  Collective collective;
  void (*run)(Primitives&, const CallShape&);
  // Rounds of the one-port model (one_port_replay.h): in a round a rank sends one message and
  // receives one. Exact; an upper bound where hosts differ in size.
  int (*rounds)(const CallShape&);
};

// Formulas of several rows: the logarithm of world_size, rounded up; all chunks but the rank's own.
int log2_rounds(const CallShape& shape);
uint64_t sent_all_but_own_chunk(int rank, const CallShape& shape);

// In order of preference, all of one collective together.
std::span<const Algorithm> algorithms();

// Null if there is none of that name for that collective.
const Algorithm* find_algorithm(std::string_view name, Collective collective);

// The one that runs in shared memory; null if there is none.
const Algorithm* find_shared_algorithm(Collective collective);

// Each name once, in the table's order.
std::vector<std::string_view> algorithm_names();

}  // namespace gxp
