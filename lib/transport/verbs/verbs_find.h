// The RDMA ports of this host that can be used.
#pragma once

#include "lib/transport/verbs/verbs_ports.h"

namespace gxp {

// The active ports that the options name; their addresses are chosen as the options say. Without
// any, the offer's obstacle has the reason: no library, device, active port, address, permission,
// or too little memory that may be locked.
// Cost: opens all devices and registers 16 MiB once, some 10 ms.
VerbsOffer find_verbs_ports(const VerbsOptions& options);

}  // namespace gxp
