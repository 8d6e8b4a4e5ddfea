// Why ranks wait: from what every rank's flight record says, the one rank that is to blame and one
// text, the same for all.
//
// The chain of waiting is followed from the rank that asked, from each rank to the one that it
// waits for, until a rank that waits for nobody, is not in the operation, does not answer or has
// left; or until it closes in a circle. Ranks that are in the same operation of the same group but
// have called different things come before all that. Texts name ranks of the world; roots are the
// group's ranks, as called.
//
// A communicator whose call has failed with kPeer asks with Store::inquire(), before it closes its
// connections: the ranks are judged by the state that they are stuck in.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "lib/collective/flight/flight_record.h"
#include "lib/collective/flight/flight_recorder.h"
#include "lib/net/store/store.h"
#include "lib/net/store/store_server.h"
#include "lib/net/store/verdict.h"

namespace gxp {

// The facts known about one rank.
struct RankReport {
  RankAnswer::Kind kind = RankAnswer::Kind::kSilent;
  std::optional<FlightRecord> record;  // of one that answers; none if it has no recorder
};

// The operation that the rank is in; null: in none.
const FlightEntry* running_entry(const RankReport& rank);

// What the ranks have answered, by rank. An answer that is no flight record counts as none.
std::vector<RankReport> read_answers(const std::vector<RankAnswer>& answers);

// Nothing if no rank is in an operation. `ranks` by rank. The finding is not settled while as many
// ranks have made one call as another, and others are still to come. Pure.
std::optional<Finding> diagnose(std::span<const RankReport> ranks, int asked_by);

// This rank answers inquiries from `recorder`; in rank 0's process `server` is not null, makes
// verdicts with diagnose(), and tells of a rank that died what its record in `directory` says last,
// if there is one on this host. The recorder outlives the connection.
void connect_diagnosis(Store& store, StoreServer* server, const FlightRecorder& recorder,
                       const std::string& directory);

}  // namespace gxp
