// Ranks that take themselves to be on several hosts.
#pragma once

#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "tests/transport/faulty.h"

namespace gxp {

// Puts so many ranks on each host; no message is broken.
class OnHosts final : public ForwardingTransport {
 public:
  explicit OnHosts(std::unique_ptr<Transport> inner, int ranks_of_host = 2)
      : ForwardingTransport(std::move(inner)) {
    if (world_size() <= ranks_of_host) return;  // one host
    for (int rank = 0; rank < world_size(); ++rank) hosts_.push_back(rank / ranks_of_host);
  }
  std::span<const int> hosts() const override { return hosts_; }

 private:
  std::vector<int> hosts_;
};

}  // namespace gxp
