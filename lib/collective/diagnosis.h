// Why ranks wait: from what every rank's flight record says, the one rank that is to blame and one
// text, the same for all.
//
// The chain of waiting is followed from the rank that asked: who waits for whom, until a rank that
// waits for nobody, is not in the operation, does not answer or has left; or until it closes in a
// circle. Ranks that are in the same operation of the same group but have called different things
// come before all that. Texts name ranks of the world; roots are the group's ranks, as called.
//
// Who calls what:
//   cmd/rank_context.cc, run_rank(), when the rank has joined; the recorder is declared before the
//   job and so outlives it
//       FlightRecorder recorder(rank, world_size, config.comm.flight_recorder);
//       connect_diagnosis(*job.store, job.server.get(), recorder, config.comm.flight_recorder);
//   Communicator::Impl::guard(), where it catches kPeer, before Transport::abort() and before
//   recorder.failed(): the ranks are judged by the state that they are stuck in
//       const Trouble trouble = trouble_of(error, deadline);
//       const Verdict verdict = find_cause(store, suspect, error.what(), trouble);
//       throw Error(kPeer, "rank {verdict.rank}: {verdict.reason}");
//     `suspect`: the rank that it waited for, or this rank if it does not know. Errors of other
//     kinds are this rank's own: Store::abort(own rank, error.what()).
//   Executor::check_unexpected(), and the shared executor where a line is of another call
//       if (is_mismatch(tag_, arrived)) throw MismatchedCall(peer, transport.rank(), call);
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "lib/base/deadline.h"
#include "lib/base/error.h"
#include "lib/collective/call.h"
#include "lib/collective/flight_record.h"
#include "lib/collective/flight_recorder.h"
#include "lib/net/store.h"
#include "lib/net/store_server.h"
#include "lib/net/verdict.h"
#include "lib/transport/transport.h"

namespace gxp {

// What is known of one rank.
struct RankReport {
  RankAnswer::Kind kind = RankAnswer::Kind::kSilent;
  std::optional<FlightRecord> record;  // of one that answers; none if it has no recorder
};

// Nothing if no rank is in an operation. `ranks` by rank. Not settled while ranks disagree on what
// to call, as many on either side, and others are still to come. Pure.
std::optional<Finding> diagnose(std::span<const RankReport> ranks, int asked_by);

// Whether the message belongs to the same call number of the same group as `mine`, but to another
// call: then its sender has called something else.
bool is_mismatch(Tag mine, Tag arrived);

// kPeer: "rank 2 called something else where rank 0 called all-reduce 17 (...)".
class MismatchedCall : public Error {
 public:
  MismatchedCall(int peer, int rank, const Call& call);
};

enum class Trouble {
  kLate,      // the deadline has passed
  kMismatch,  // a peer has called something else: nobody need wait for the deadline
  kLost,      // a connection ended: a consequence, as a rule, of what the store knows at once
};
Trouble trouble_of(const Error& error, const Deadline& deadline);

// The verdict for a rank whose operation has failed; it is the same on all ranks, and ends the job.
// `reason` says what this rank has seen, for when nothing better is found. Within 1.5 s, 2.5 s for
// kLost. Threads: any.
Verdict find_cause(Store& store, int suspect, std::string_view reason, Trouble trouble);

// This rank answers inquiries from `recorder`; in rank 0's process `server` is not null, makes
// verdicts with diagnose(), and tells of a rank that died what its record in `directory` says last,
// if there is one on this host. The recorder outlives the connection.
void connect_diagnosis(Store& store, StoreServer* server, const FlightRecorder& recorder,
                       const std::string& directory);
void disconnect_diagnosis(Store& store, StoreServer* server);

}  // namespace gxp
