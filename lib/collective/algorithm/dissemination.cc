#include "lib/collective/algorithm/dissemination.h"

namespace gxp {

void dissemination_barrier(Primitives& comm, const CallShape& /*shape*/) {
  const int p = comm.world_size();
  for (int distance = 1; distance < p; distance *= 2) {
    comm.send_and_recv_token((comm.rank() + distance) % p, (comm.rank() + p - distance) % p);
  }
}

}  // namespace gxp
