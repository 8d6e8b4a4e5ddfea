#include "lib/transport/verbs/verbs_receiver.h"

#include <algorithm>
#include <iterator>

#include "lib/base/error.h"

namespace gxp {
namespace {

constexpr size_t kPage = 4096;
constexpr size_t kReadBytes = 1;      // every message has as many
constexpr double kFlushPatience = 4;  // seconds; a NIC that does not answer itself has failed

LanePath path_to_itself(const VerbsPort& port) {
  const auto gid =
      std::ranges::find_if(port.gids, [](const VerbsGid& each) { return each.index >= 0; });
  return {.peers_port = port,
          .kind = GidKind(gid - port.gids.begin()),
          .reads = true,
          .patience_s = kFlushPatience};
}

// A grant's number is its place in the table and, above, its round.
constexpr uint32_t kPlaceBits = 8;
constexpr uint32_t kRoundMask = 0xffffff;

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

void VerbsReceiver::post(PendingMessage& receive) {
  if (receive.bytes <= channel_.longest_payload()) return;
  posted_.push_back({.message = &receive});
  grant_early();
}

bool VerbsReceiver::progress(PeerMessages& messages) {
  bool moved = false;
  for (; messages.awaits() && !inbox_.empty(); moved = true) take_first(messages);
  moved |= grant_announced();
  moved |= grant_early();
  return moved;
}

void VerbsReceiver::take_first(PeerMessages& messages) {
  const uint16_t slot = inbox_.front();
  const ConstMemory body = channel_.body_of(slot);
  const VerbsHeader header = *(reinterpret_cast<const VerbsHeader*>(body.data) - 1);
  const bool is_short = header.kind == VerbsKind::kPayload;
  if (is_short ? header.bytes != body.bytes || header.bytes == 0 : header.bytes == 0)
    channel_.fail_corrupt("a message of a wrong size");
  inbox_.pop_front();
  if (is_short) {
    PendingMessage& message = messages.begin(header.tag, header.bytes);
    deliver(message, body);
    messages.finish(message);
  } else {
    begin(header, messages);
  }
  channel_.release_message(slot);
}

void VerbsReceiver::begin(const VerbsHeader& header, PeerMessages& messages) {
  PendingMessage& message = messages.begin(header.tag, header.bytes);
  const auto posted = std::ranges::find(posted_, &message, &Arrival::message);
  if (posted != posted_.end()) {
    announced_.splice(announced_.end(), posted_, posted);
  } else {
    announced_.push_back({.message = &message});  // parked
  }
  const auto arriving = std::prev(announced_.end());
  arriving->announced = true;
  arriving->number = header.number;
  end_if_whole(arriving, messages);
}

bool VerbsReceiver::grant_announced() {
  bool moved = false;
  for (auto arriving = announced_.begin(); arriving != announced_.end(); ++arriving) {
    while (arriving->granted < arriving->message->bytes && grant_more(arriving)) moved = true;
  }
  return moved;
}

// While an announced message waits for its grant, or a receive before this one with the same tag
// does, the peer would take an early one for theirs.
bool VerbsReceiver::grant_early() {
  const auto waits = [](const Arrival& arrival) { return arrival.granted == 0; };
  bool moved = false;
  if (std::ranges::any_of(announced_, waits)) return moved;
  auto given = size_t(std::ranges::count_if(grants_, &Grant::used));
  size_t seen = 0;
  for (auto it = posted_.begin(); it != posted_.end() && seen < kGrants; ++it, ++seen) {
    if (given >= kEarlyGrants) break;
    if (!waits(*it) || combines(*it->message)) continue;
    const Tag tag = it->message->tag;
    if (std::any_of(posted_.begin(), it, [&](const Arrival& before) {
          return before.message->tag == tag && waits(before);
        }))
      continue;
    if (!grant_more(it)) break;
    ++given;
    moved = true;
  }
  return moved;
}

bool VerbsReceiver::grant_more(Arriving arriving) {
  PendingMessage& message = *arriving->message;
  if (!combines(message)) {
    if (!arriving->memory.valid())
      arriving->memory = registrations_.use({message.target, message.bytes, message.space});
    return grant(arriving, message.target, message.bytes, arriving->memory);
  }
  std::byte* const tile = free_tile();
  if (tile == nullptr) return false;
  return grant(arriving, tile, std::min(kTileBytes, message.bytes - arriving->granted),
               tiles_->registration());
}

std::byte* VerbsReceiver::free_tile() {
  if (!tiles_)
    tiles_ =
        std::make_unique<VerbsRegion>(registrations_, kTiles * kTileBytes, VerbsOrder::kRelaxed);
  for (size_t i = 0; i < kTiles; ++i) {
    std::byte* const tile = tiles_->data() + i * kTileBytes;
    if (std::ranges::none_of(grants_, [&](const Grant& it) { return it.used && it.place == tile; }))
      return tile;
  }
  return nullptr;
}

bool VerbsReceiver::grant(Arriving arriving, std::byte* place, size_t bytes,
                          const VerbsRegistrations::Use& at) {
  const auto free = std::ranges::find(grants_, false, &Grant::used);
  if (free == grants_.end()) return false;
  const uint32_t round = (free->round + 1) & kRoundMask;
  VerbsGrant text{.offset = arriving->granted,
                  .bytes = bytes,
                  .address = reinterpret_cast<uintptr_t>(place),
                  .number = round << kPlaceBits | uint32_t(free - grants_.begin())};
  for (const VerbsRoute& route : channel_.routes())
    text.keys[route.device] = at.remote_key(route.device);
  const VerbsHeader header{.kind = VerbsKind::kGrant,
                           .answers = uint8_t(arriving->announced),
                           .number = arriving->number,
                           .tag = arriving->message->tag,
                           .bytes = arriving->message->bytes};
  const auto* const body = reinterpret_cast<const std::byte*>(&text);
  if (!channel_.send(header, {body, sizeof text, MemorySpace::kHost})) return false;
  arriving->granted += bytes;
  if (combines(*arriving->message)) arriving->tiles.push_back(size_t(free - grants_.begin()));
  *free = {.used = true,
           .round = round,
           .lanes_left = cut_over_lanes(bytes, channel_.routes().size()).count,
           .bytes = bytes,
           .place = place,
           .arriving = arriving};
  return true;
}

void VerbsReceiver::on_data(uint32_t number, PeerMessages& messages) {
  const size_t place = number & ((1u << kPlaceBits) - 1);
  if (place >= kGrants || !grants_[place].used || grants_[place].lanes_left == 0 ||
      grants_[place].round != number >> kPlaceBits)
    channel_.fail_corrupt("data without a grant");
  Grant& grant = grants_[place];
  if (--grant.lanes_left > 0) return;
  if (grant.arriving->message->device == nullptr || !gpu_.reached.needs_flush)
    return land(grant, messages);
  if (!flush_) flush_ = std::make_unique<VerbsFlush>(peer_, channel_.routes(), registrations_);
  grant.flushes_left = flush_->start(uint16_t(place), grant.place, grant.arriving->memory);
}

void VerbsReceiver::on_flushed(const WorkId& id, const ibv_wc& completion, PeerMessages& messages) {
  flush_->on_done(id, completion);
  if (--grants_[id.slot].flushes_left == 0) land(grants_[id.slot], messages);
}

void VerbsReceiver::land(Grant& grant, PeerMessages& messages) {
  const Arriving arriving = grant.arriving;
  grant.landed = true;
  if (combines(*arriving->message)) {
    combine_landed(arriving);
  } else {
    arriving->landed += grant.bytes;
    arriving->message->moved = arriving->landed;
    grant.used = false;
  }
  end_if_whole(arriving, messages);
}

// In the order of the bytes, whichever lane was first.
void VerbsReceiver::combine_landed(Arriving arriving) {
  while (!arriving->tiles.empty() && grants_[arriving->tiles.front()].landed) {
    Grant& grant = grants_[arriving->tiles.front()];
    arriving->tiles.pop_front();
    deliver(*arriving->message, {grant.place, grant.bytes});
    arriving->landed += grant.bytes;
    grant.used = grant.landed = false;
  }
}

void VerbsReceiver::end_if_whole(Arriving arriving, PeerMessages& messages) {
  if (!arriving->announced || arriving->landed < arriving->message->bytes) return;
  PendingMessage& message = *arriving->message;
  announced_.erase(arriving);
  messages.finish(message);
}

bool VerbsReceiver::holds_memory() const {
  const auto holds = [](const Arrival& arrival) { return arrival.memory.valid(); };
  return std::ranges::any_of(posted_, holds) || std::ranges::any_of(announced_, holds);
}

void VerbsReceiver::release_memory() noexcept {
  flush_.reset();  // it may be reading
  for (Arrival& arrival : posted_) arrival.memory.reset();
  for (Arrival& arrival : announced_) arrival.memory.reset();
}

}  // namespace gxp
