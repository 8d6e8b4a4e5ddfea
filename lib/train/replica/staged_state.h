// A rank's part of the state in host memory, so that training may go on while it is written.
#pragma once

#include <cstddef>
#include <cstdint>
#include <stop_token>
#include <string>
#include <vector>

#include "lib/ckpt/native/writer.h"

namespace gxp {

class Communicator;

struct StagedState {
  struct Share {  // `count` elements of a tensor, from its element `begin` on
    TensorInfo tensor;
    uint64_t begin = 0;
    size_t count = 0;
    bool frozen = false;
  };
  std::vector<Share> shares;
  std::vector<std::byte> values;  // of all shares, one after the other
  CheckpointInfo info;
};

// Adds the frozen shares, or the others. False if `stop` was requested before all were written.
bool write_staged(const StagedState& staged, bool frozen, const std::stop_token& stop,
                  CheckpointWriter& writer);

// [collective] A random name for what all ranks write together; the same on all.
std::string make_save_id(Communicator& communicator);

}  // namespace gxp
