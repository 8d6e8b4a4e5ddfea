#include "lib/net/launch/absence_report.h"

#include <chrono>

#include "lib/base/deadline.h"
#include "lib/net/identity/identity.h"
#include "lib/net/socket/socket.h"
#include "lib/net/store/rendezvous_point.h"
#include "lib/net/store/store.h"

namespace gxp {
namespace {

using namespace std::chrono_literals;

constexpr auto kConnectTime = 50ms;
constexpr auto kHandshakeTime = 1s;  // rank 0 may listen before it answers

}  // namespace

void report_absence(const Environment& environment, const std::string& reason,
                    std::chrono::milliseconds at_least, const std::stop_token& stop) noexcept {
  const Deadline least = Deadline::after(at_least);
  // ends: when the caller says so, after the least time and one try
  for (bool tried = false; !least.expired() || !stop.stop_requested() || !tried; tried = true) {
    try {
      const RankIdentity identity = identity_from(environment);
      const RendezvousPoint point =
          arrange_rendezvous(identity, environment, Deadline::after(kConnectTime));
      connect_tcp(point.store, "rank 0", Deadline::after(kConnectTime));  // does it listen?
      return Store::report_absence(point.store, identity.rank, identity.world_size, point.secret,
                                   reason, Deadline::after(kHandshakeTime));
    } catch (const std::exception&) {
      // Not yet, or no longer: then rank 0 knows that all had joined.
    }
  }
}

}  // namespace gxp
