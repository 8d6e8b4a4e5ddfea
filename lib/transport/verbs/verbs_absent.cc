// Stands for all that needs libibverbs' headers, in builds that had none.
#include "lib/base/error.h"
#include "lib/transport/verbs/verbs.h"
#include "lib/transport/verbs/verbs_find.h"

namespace gxp {

VerbsOffer find_verbs_ports(const VerbsOptions& /*options*/) {
  return {.obstacle = "has a gxp that was built without libibverbs-dev"};
}

std::unique_ptr<LinkGroup> connect_verbs(const TransportContext& /*context*/,
                                         const JoinedPairs& /*joins*/) {
  fail(ErrorKind::kUnavailable, "connect ranks by verbs: built without libibverbs-dev");
}

}  // namespace gxp
