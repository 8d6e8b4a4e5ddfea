#include "lib/transport/verbs/verbs_flush.h"

#include <algorithm>

#include "lib/base/error.h"

namespace gxp {

namespace {

constexpr size_t kPage = 4096;
constexpr size_t kReadBytes = 1;  // every message has as many
constexpr double kPatience = 4;   // seconds; a NIC that does not answer itself has failed

LanePath path_to_itself(const VerbsPort& port) {
  const auto gid =
      std::ranges::find_if(port.gids, [](const VerbsGid& each) { return each.index >= 0; });
  return {.peers_port = port,
          .kind = GidKind(gid - port.gids.begin()),
          .reads = true,
          .patience_s = kPatience};
}

}  // namespace

VerbsFlush::VerbsFlush(int peer, std::span<const VerbsRoute> routes,
                       VerbsRegistrations& registrations)
    : landing_(registrations, kPage, VerbsOrder::kStrict) {
  for (const VerbsRoute& route : routes) {
    if (std::ranges::find(loops_, route.device, &Loop::device) != loops_.end()) continue;
    VerbsDevice& device = route.lane->device();
    constexpr int kReceives = 1;  // none comes
    auto lane = std::make_unique<VerbsLane>(device, peer, loops_.size(), kReceives);
    lane->connect(lane->address(), path_to_itself(device.port()));
    loops_.push_back({route.device, std::move(lane)});
  }
}

size_t VerbsFlush::start(uint16_t slot, const std::byte* address,
                         const VerbsRegistrations::Use& memory) {
  for (const Loop& loop : loops_) {
    const RegisteredBytes into{landing_.data(), kReadBytes,
                               landing_.registration().local_key(loop.device)};
    loop.lane->read(slot, into, reinterpret_cast<uintptr_t>(address),
                    memory.remote_key(loop.device));
  }
  return loops_.size();
}

void VerbsFlush::on_done(const WorkId& id, const ibv_wc& completion) {
  VerbsLane& lane = *loops_[id.lane].lane;
  if (completion.status != IBV_WC_SUCCESS)
    fail(ErrorKind::kDevice, "flush GPU memory through {}: {} (status {}, vendor {:#x})",
         lane.device().name(), lane.device().verbs().wc_status_str(completion.status),
         int(completion.status), completion.vendor_err);
  lane.on_sent();
}

}  // namespace gxp
