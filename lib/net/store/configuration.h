// Whether all ranks were given the same configuration.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lib/base/deadline.h"
#include "lib/net/store/store.h"

namespace gxp {

// Settings as text, in any order, each key once: {"optim.lr", "0.001"}.
using FlatConfiguration = std::vector<std::pair<std::string, std::string>>;

// Gives a text of this rank, under a name; the result has all ranks', in order of rank.
using GatherTexts =
    std::function<std::vector<std::string>(std::string_view name, std::string_view text)>;

// Called by all ranks. Throws kConfig on every rank if the configurations differ, with the keys,
// values and ranks, and what `gather` throws. Ranks that agree exchange 32 bytes each.
void check_configuration(const GatherTexts& gather, const FlatConfiguration& mine);
// The same through the store; kPeer as Store::gather() does.
void check_configuration(Store& store, const FlatConfiguration& mine, Deadline deadline);

// "optim.lr: 0.001 on rank 0, 1, 0.002 on rank 2; model.layers: 2 on rank 0, 1, absent on rank 2",
// "" if all are the same. One configuration per rank. Pure. At most 16 keys are written out.
std::string configuration_differences(const std::vector<FlatConfiguration>& by_rank);

}  // namespace gxp
