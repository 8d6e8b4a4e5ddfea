// Ranks that take themselves to be on several hosts.
#pragma once

#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "tests/transport/faulty.h"

namespace gxp {

// Puts two ranks on each host; no message is broken.
class OnHosts final : public ForwardingTransport {
 public:
  explicit OnHosts(std::unique_ptr<Transport> inner) : ForwardingTransport(std::move(inner)) {
    for (int rank = 0; rank < world_size(); ++rank) hosts_.push_back(rank / 2);
  }
  std::span<const int> hosts() const override { return hosts_; }

 private:
  std::vector<int> hosts_;
};

}  // namespace gxp
