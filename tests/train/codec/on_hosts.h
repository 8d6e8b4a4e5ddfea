// Golden runs on ranks that are threads and take themselves to be on several hosts.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "tests/collective/on_hosts.h"
#include "tests/train/golden.h"

namespace gxp {

struct RunHosts {
  int count = 1;
  int ranks_of_host = 1;
  [[nodiscard]] int ranks() const { return count * ranks_of_host; }
};

// fn(communicator) on each rank.
template <class Fn>
auto run_on_hosts(const RunHosts& hosts, const Fn& fn) {
  InprocWorld world(hosts.ranks());
  const auto make = [&](int rank) {
    return std::make_unique<OnHosts>(world.make_transport(rank), hosts.ranks_of_host);
  };
  return run_ranks_over(make, hosts.ranks(), fn);
}

inline std::vector<Trained> train_on_hosts(const RunConfig& config, const RunHosts& hosts) {
  return run_on_hosts(hosts,
                      [&](Communicator& communicator) { return train(config, communicator); });
}

// Rank 0 of train_part().
inline Trained part_of(const RunConfig& config, const RunHosts& hosts, int until) {
  return run_on_hosts(hosts, [&](Communicator& communicator) {
    return train_part(config, communicator, until);
  })[0];
}

// Three steps; HOST in a setting is the number of a host's ranks.
inline RunConfig config_on(const RunHosts& hosts, Settings sets, const Settings& more = {}) {
  for (std::string& set : sets) {
    const size_t place = set.find("HOST");
    if (place != std::string::npos) set.replace(place, 4, std::to_string(hosts.ranks_of_host));
  }
  return golden_config("gpt2-accum", 1,
                       Settings{"train.micro_batch=1", "train.steps=3"} + sets + more);
}

}  // namespace gxp
