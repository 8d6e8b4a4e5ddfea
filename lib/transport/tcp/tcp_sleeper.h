// How a rank with TCP streams looks at many of them at once, and sleeps until one moves.
//
// A few sockets are tried one after the other: then a message costs no call but its own. With more,
// one call asks an event queue which of them to try. Every 0.5 s of sleep it looks for hosts that
// have fallen silent.
#pragma once

#include <poll.h>

#include <chrono>
#include <memory>
#include <span>
#include <vector>

#include "lib/base/fd.h"
#include "lib/transport/stream/stream.h"
#include "lib/transport/tcp/tcp_stream.h"

namespace gxp {

// Before sleeping: several times what a sleep and a wake-up cost (17 to 57 us).
constexpr std::chrono::microseconds kTcpYieldTime{200};

class TcpSleeper : public Sleeper {
 public:
  // `streams` by rank, null where there is none. They outlive the sleeper and use `common`.
  TcpSleeper(std::vector<TcpStream*> streams, std::unique_ptr<TcpCommon> common);

  void look(size_t open) override;
  void prepare() override {}
  void sleep(std::span<const Interest> interests, Deadline deadline) override;
  void done() override {}
  // Lasts: an abort is for good.
  void wake() noexcept override;

  // A sleep in parts, for those who wait for other things too: what to poll, for how long at most,
  // and what to do afterwards. Interests in peers without a stream are passed over.
  void add_entries(std::span<const Interest> interests, std::vector<pollfd>& entries) const;
  static int longest_sleep_ms(Deadline deadline);
  void end_sleep(std::span<const Interest> interests);

 private:
  void take_events();

  std::vector<TcpStream*> streams_;
  std::unique_ptr<TcpCommon> common_;
  Fd wake_;
  Fd events_;  // invalid if there are few streams
  std::vector<pollfd> entries_;
  Deadline::Clock::time_point next_look_{};  // for silent hosts
};

}  // namespace gxp
