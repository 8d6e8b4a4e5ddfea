// Why a connection has failed, in words for the user.
#pragma once

#include <string>

#include "lib/transport/verbs/verbs_library.h"

namespace gxp {

// Text that follows "rank 3": "cannot be reached by RDMA from mlx5_0 port 1 (...): transport retry
// counter exceeded (12/0x81); is its process running, and the network between whole?". `lane`
// names both ends.
std::string describe_failure(const VerbsFunctions& verbs, const ibv_wc& completion,
                             const std::string& lane);

}  // namespace gxp
