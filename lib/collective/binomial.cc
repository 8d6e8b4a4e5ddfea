#include "lib/collective/binomial.h"

#include <algorithm>
#include <bit>

namespace gxp {
namespace {

// The rank's number, counted from the root.
unsigned number_of(int rank, int world_size, int root) {
  return static_cast<unsigned>((rank + world_size - root) % world_size);
}

// Bits below the lowest one that is set; those of the whole tree for the root.
int free_bits(unsigned number, int world_size) {
  return number == 0 ? binomial_rounds(world_size) : std::countr_zero(number);
}

}  // namespace

void binomial_broadcast(Primitives& comm, size_t count, int root) {
  const Range all{0, count};
  const auto world_size = static_cast<unsigned>(comm.world_size());
  const unsigned number = number_of(comm.rank(), comm.world_size(), root);
  const auto rank_of = [&](unsigned n) {
    return static_cast<int>((n + static_cast<unsigned>(root)) % world_size);
  };
  if (number != 0) comm.recv(rank_of(number & (number - 1)), all);
  for (int bit = free_bits(number, comm.world_size()) - 1; bit >= 0; --bit) {
    const unsigned child = number + (1u << bit);
    if (child < world_size) comm.send(rank_of(child), all);
  }
}

int binomial_rounds(int world_size) {
  return std::bit_width(static_cast<unsigned>(world_size) - 1);
}

uint64_t binomial_broadcast_sent(int rank, int world_size, size_t count, int root) {
  const unsigned number = number_of(rank, world_size, root);
  const auto behind = static_cast<unsigned>(world_size) - number - 1;
  return uint64_t{count} * static_cast<unsigned>(std::min<int>(free_bits(number, world_size),
                                                               std::bit_width(behind)));
}

}  // namespace gxp
