#include "lib/colltest/gather.h"

#include <algorithm>

namespace gxp {

std::vector<std::byte> gather_bytes(Communicator& communicator, ConstMemory mine) {
  const size_t total =
      communicator.rank() == 0 ? mine.bytes * size_t(communicator.world_size()) : 0;
  std::vector<std::byte> all(total);
  const Call call{.collective = Collective::kGather,
                  .dtype = DType::kU8,
                  .count = mine.bytes * size_t(communicator.world_size())};
  communicator.run(call, mine, memory_of(all));
  return all;
}

}  // namespace gxp
