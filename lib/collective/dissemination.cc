#include "lib/collective/dissemination.h"

#include <bit>

namespace gxp {

void dissemination_barrier(Primitives& comm, size_t /*count*/, int /*root*/) {
  const int p = comm.world_size();
  for (int distance = 1; distance < p; distance *= 2) {
    comm.send_and_recv_token((comm.rank() + distance) % p, (comm.rank() + p - distance) % p);
  }
}

int dissemination_rounds(int world_size) {
  return std::bit_width(static_cast<unsigned>(world_size) - 1);
}

uint64_t dissemination_barrier_sent(int, int, size_t, int) { return 0; }

}  // namespace gxp
