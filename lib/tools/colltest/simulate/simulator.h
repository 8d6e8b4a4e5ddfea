// Times an algorithm on a virtual clock: the steps that the executor would run, over links that
// messages share.
//
// A rank does its steps in order, as executor.h does:
//   Sending    a message travels in segments, which leave one after the other; no rank waits for
//              the peer, which takes messages when they arrive, into its own memory if necessary.
//   Receiving  ends the step when all segments have arrived. A fold folds one after the other while
//              the next still travel. What an earlier step sent is not overwritten before it has
//              arrived.
//   Time       of the rank: message_overhead_s for each segment that it sends or receives, and
//              folds and copies. simulated_network.h has the links' time.
// A rank ends when its steps are done and its messages have arrived. All start at 0.
// The result is the same in every run. Memory: about 56 bytes for each step that is kept (options)
// and 200 for each packet under way; cost: about 0.3 us for each event, of which a packet takes two
// on one switch and up to four over a spine.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "lib/base/dtype.h"
#include "lib/collective/algorithm/algorithm.h"
#include "lib/tools/colltest/simulate/simulated_network.h"

namespace gxp {

struct SimulationOptions {
  size_t segment_bytes = 256u << 10;  // rounded up to 64, as by the executor
  // A message of more segments than this travels as so many packets of several segments each: less
  // pipelining by at most one part in `max_packets`, and a bounded number of events. > 0.
  int max_packets = 16;
  size_t busiest = 10;              // links to name
  bool keep_steps = false;          // for the trace of simulation_report.h
  size_t steps_bytes = 512u << 20;  // of memory for recorded steps
};

struct LinkLoad {
  std::string name;
  uint64_t bytes = 0;
  double utilisation = 0;  // part of the whole time that it was busy
};

struct SimulatedStep {
  int rank = 0;
  double begin_s = 0;
  double end_s = 0;
  CollectiveStep step;
};

struct SimulationResult {
  double seconds = 0;                   // until the last rank ends
  std::vector<double> rank_seconds;     // until each ends
  std::vector<uint64_t> bytes_sent;     // by rank; elements_sent of the algorithm times their size
  std::vector<uint64_t> messages_sent;  // by rank; segments and tokens
  std::vector<uint64_t> link_bytes;     // by link
  std::vector<LinkLoad> busiest;        // links, the most utilised first
  std::vector<SimulatedStep> steps;     // if kept, in the order in which they ended
  uint64_t events = 0;
};

// Ranks on GPUs of a cluster; shape.hosts is hosts_of_ranks(cluster, gpu_of_rank), or empty for
// algorithms that shall not know. kConfig: gpu_of_rank names not one GPU of the cluster for each
// rank, or one twice.
SimulationResult simulate(const Algorithm& algorithm, const CallShape& shape, DType dtype,
                          const Cluster& cluster, std::span<const int> gpu_of_rank,
                          const SimulationOptions& options = {});

// Over the measured costs of a profile, without a graph.
SimulationResult simulate(const Algorithm& algorithm, const CallShape& shape, DType dtype,
                          const FlatLinks& links, const SimulationOptions& options = {});

}  // namespace gxp
