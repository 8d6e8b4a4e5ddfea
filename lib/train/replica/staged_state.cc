#include "lib/train/replica/staged_state.h"

#include <fmt/format.h>

#include <algorithm>
#include <random>

#include "lib/collective/gather_texts.h"

namespace gxp {

bool write_staged(const StagedState& staged, bool frozen, const std::stop_token& stop,
                  CheckpointWriter& writer) {
  constexpr size_t kWrittenElements = size_t{4} << 20;  // between two looks at `stop`
  ConstMemory left = memory_of(staged.values);
  for (const StagedState::Share& share : staged.shares) {
    const size_t element_bytes = size_of(share.tensor.dtype);
    const size_t share_bytes = share.count * element_bytes;
    const ConstMemory values = left.slice(0, share_bytes);
    left = left.slice(share_bytes, left.bytes - share_bytes);
    for (size_t done = 0; share.frozen == frozen && done < share.count; done += kWrittenElements) {
      if (stop.stop_requested()) return false;
      const size_t count = std::min(kWrittenElements, share.count - done);
      writer.add(share.tensor, share.begin + done,
                 values.slice(done * element_bytes, count * element_bytes));
    }
  }
  return true;
}

std::string make_save_id(Communicator& communicator) {
  std::random_device random;
  const std::string mine = fmt::format("{:08x}{:08x}", random(), random());
  return gather_texts(communicator, mine).front();
}

}  // namespace gxp
