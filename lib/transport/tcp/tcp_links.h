// The TCP links of a rank: how it checks many of them at once, and what it polls to sleep.
//
// A few sockets are tried one after the other: then a message costs no call but its own. With more,
// one call asks an event queue which of them to try. Every 0.5 s of sleep it looks for hosts that
// have fallen silent.
#pragma once

#include <chrono>
#include <memory>
#include <span>
#include <vector>

#include "lib/base/fd.h"
#include "lib/transport/link.h"
#include "lib/transport/tcp/sealed_stream.h"
#include "lib/transport/tcp/tcp_stream.h"

namespace gxp {

class TcpLinks final : public LinkGroup {
 public:
  // `peers` by rank, empty where there is none; they use `common`.
  TcpLinks(std::vector<TcpPeer> peers, std::unique_ptr<TcpCommon> common);

  WaitPolicy wait_policy() const override;
  void before_look(size_t open) override;
  void add_handles(std::span<const Interest> interests, std::vector<pollfd>& entries) override;
  void after_poll(std::span<const Interest> interests, std::span<const pollfd> entries) override;

 private:
  void watch_all();
  void take_events();

  std::vector<TcpStream*> streams_;  // by rank, null where there is none
  std::unique_ptr<TcpCommon> common_;
  Fd events_;                                // invalid if there are few streams
  Deadline::Clock::time_point next_look_{};  // for silent hosts
};

}  // namespace gxp
