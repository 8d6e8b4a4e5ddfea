// What a rank sees, as a report.
#pragma once

#include "lib/inspect/view/rank_view.h"
#include "lib/report/report.h"

namespace gxp {

// Facts: rank, ranks, host, host_index, local_rank, gpu, bus_id, model, numa_node, cpus, nics
// (those that NCCL gives it). gpus[] of {rank, gpu, type, bandwidth_gb_s, via, peer_to_peer,
// because}, nics[] alike, other_hosts[], rings[] and trees[] of its neighbours, notes[]. Without a
// GPU numa_nodes[] of the host. What is unknown or does not apply is left out.
Report rank_report(const Topology& topology, const RankView& view);

}  // namespace gxp
