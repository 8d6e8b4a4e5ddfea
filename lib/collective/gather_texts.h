// Texts of the ranks, brought to all of them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "lib/collective/communicator.h"
#include "lib/collective/engine/gather.h"

namespace gxp {

// [collective] As gather_texts() of engine/gather.h. Errors: the communicator's as well.
inline std::vector<std::string> gather_texts(Communicator& communicator, std::string_view mine) {
  return gather_texts(communicator.rank(), communicator.world_size(), mine,
                      [&](const Call& call, ConstMemory input, Memory output) {
                        communicator.run(call, input, output);
                      });
}

}  // namespace gxp
