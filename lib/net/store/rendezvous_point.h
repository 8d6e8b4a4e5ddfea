// The address at which the ranks of a job find each other, and the secret that proves who belongs
// to it. The defaults are:
//
//   Secret   what the environment gives (lib/net/socket/secret.h). Otherwise, where the launcher
//            has a key-value exchange, a new one that rank 0 makes and passes on through it; else
//            one that each rank derives from the user's file (lib/net/identity/user_secret.h) and
//            the job's name.
//   Address  RankIdentity's. If the launcher has a key-value exchange, rank 0 takes a free port and
//            sends the others its address through it, so that jobs on one host do not collide.
//
// The exchange is as private as the launcher's own connections: Hydra's and Open MPI's between
// hosts are neither encrypted nor, Hydra's, authenticated. On an untrusted network, set
// GXP_JOB_SECRET_FILE; then no secret passes through the exchange.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "lib/base/deadline.h"
#include "lib/base/environment.h"
#include "lib/base/fd.h"
#include "lib/net/identity/identity.h"
#include "lib/net/socket/secret.h"
#include "lib/net/socket/socket.h"

namespace gxp {

struct RendezvousPoint {
  Endpoint store;  // as other hosts reach it
  Secret secret;
  Fd listener;  // on rank 0 only: the store's
};

// Called once by every rank. A world of one has a secret of its own, or the one it is given. Throws
// kConfig if rank 0's host is not given, or if some ranks were given a secret and others were not;
// as user_secret(), pass_by_pmi() and pass_by_pmix() do.
RendezvousPoint arrange_rendezvous(const RankIdentity& identity, const Environment& environment,
                                   Deadline deadline);

// Rank 0's message to the others, as one word: "1,10.0.0.7,4711,SECRET", with "given" in place of a
// secret that they have been given, too. Throws kPeer for anything else.
std::string announcement(const Endpoint& store, const std::optional<Secret>& secret);
std::pair<Endpoint, std::optional<Secret>> parse_announcement(std::string_view text);

}  // namespace gxp
