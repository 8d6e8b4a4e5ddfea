// Asks all ranks what they are doing, from any thread of rank 0's process, before, while and after
// the ranks are together.
#pragma once

#include <mutex>
#include <vector>

#include "lib/net/store/store_server.h"

namespace gxp {

class RankSurvey {
 public:
  // Null: there is no server any more. Waits for a survey that is under way.
  void connect(StoreServer* server) {
    const std::lock_guard lock(mutex_);
    server_ = server;
  }
  // By rank; empty without a server.
  std::vector<RankAnswer> ask(Deadline::Duration patience) {
    const std::lock_guard lock(mutex_);
    return server_ == nullptr ? std::vector<RankAnswer>{} : server_->survey(patience);
  }

 private:
  std::mutex mutex_;  // guards server_, also while it is asked
  StoreServer* server_ = nullptr;
};

}  // namespace gxp
