// One authenticated connection between every two ranks of a host, over Unix sockets.
#pragma once

#include <string>
#include <vector>

#include "lib/base/fd.h"
#include "lib/transport/context.h"

namespace gxp {

// As connect_mesh() under the name of the transport (MeshParts::name); `joins` names ranks of one
// host. What travels on the connections stays within the kernel.
std::vector<Fd> connect_local_mesh(const TransportContext& context, const std::string& name,
                                   const JoinedPairs& joins);

}  // namespace gxp
