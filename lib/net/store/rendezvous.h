// How a rank joins its job: rank 0 serves the store, every rank connects to it.
#pragma once

#include <memory>
#include <string>

#include "lib/base/deadline.h"
#include "lib/base/environment.h"
#include "lib/net/identity/identity.h"
#include "lib/net/socket/secret.h"
#include "lib/net/store/store.h"
#include "lib/net/store/store_server.h"

namespace gxp {

struct Rendezvous {
  Secret secret;                        // which connections between ranks prove, too
  std::string master_addr;              // rank 0's host, as the others reach it
  std::unique_ptr<StoreServer> server;  // rank 0 only
  std::unique_ptr<Store> store;         // destroyed before the server

  // Says goodbye; rank 0 then keeps the store up until all ranks have done so, or the deadline.
  // Without it, for example during stack unwinding, the other ranks treat this one as failed.
  void close(Deadline deadline);
};

// Called once by every rank. Raises this process's limit of open files to the hard limit. Errors:
// as arrange_rendezvous() (lib/net/store/rendezvous_point.h) and Store's constructor. `silence`: as
// detect_silence().
Rendezvous join_job(const RankIdentity& identity, const Environment& environment, Deadline deadline,
                    Deadline::Duration silence = kUsualSilence);

}  // namespace gxp
