#include "lib/transport/verbs/verbs_links.h"

#include <arpa/inet.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <utility>

#include "lib/base/error.h"
#include "lib/transport/backoff.h"

namespace gxp {
namespace {

// Before sleeping: several times what a sleep and a wake-up cost (10 to 60 us).
constexpr std::chrono::microseconds kVerbsYieldTime{200};
constexpr std::chrono::milliseconds kLastWords{1000};

std::vector<std::unique_ptr<PeerLink>> as_links(std::vector<std::unique_ptr<VerbsLink>>& links) {
  std::vector<std::unique_ptr<PeerLink>> result;
  for (auto& link : links) result.push_back(std::move(link));
  return result;
}

}  // namespace

void VerbsLink::post_send(PendingMessage& send) {
  sender_.post(send);
  sender_.progress(messages());
}

bool VerbsLink::progress() {
  bool moved = std::exchange(moved_, false);
  moved |= receiver_.progress(messages());
  moved |= sender_.progress(messages());
  return channel_.return_credits() || moved;
}

void VerbsLink::complete(const WorkId& id, const ibv_wc& completion) {
  moved_ = true;
  const bool is_peers = id.kind != WorkId::Kind::kFlush;
  if (completion.status != IBV_WC_SUCCESS && is_peers) return channel_.on_failure(id, completion);
  if (stopped_ && id.kind != WorkId::Kind::kSend) return;
  switch (id.kind) {
    case WorkId::Kind::kSend:
      return channel_.on_sent(id.lane, id.slot);
    case WorkId::Kind::kWrite:
      channel_.on_written(id.lane);
      return sender_.on_written(id.lane, messages());
    case WorkId::Kind::kFlush:
      return receiver_.on_flushed(id, completion, messages());
    case WorkId::Kind::kReceive:
      if (completion.opcode != IBV_WC_RECV_RDMA_WITH_IMM)
        return take_message(id.slot, completion.byte_len);
      channel_.recycle(id.lane, id.slot);
      return receiver_.on_data(ntohl(completion.imm_data), messages());
  }
}

void VerbsLink::stop() noexcept {
  stopped_ = true;
  channel_.give_up(sender_.holds_memory() || receiver_.holds_memory());
  sender_.release_memory();
  receiver_.release_memory();
}

void VerbsLink::take_message(uint16_t slot, size_t bytes) {
  const VerbsHeader header = channel_.take(slot, bytes);
  switch (header.kind) {
    case VerbsKind::kPayload:
    case VerbsKind::kAnnounce:
      return receiver_.on_message(slot);
    case VerbsKind::kGrant: {
      VerbsGrant grant;
      const ConstMemory body = channel_.body_of(slot);
      if (body.bytes != sizeof grant) channel_.fail_corrupt("half a grant");
      std::memcpy(&grant, body.data, sizeof grant);
      channel_.recycle(0, slot);
      return sender_.on_grant(header, grant);
    }
    case VerbsKind::kCredits:
    case VerbsKind::kEnd:
      return channel_.recycle(0, slot);
  }
  channel_.fail_corrupt("a message of an unknown kind");
}

VerbsLinks::VerbsLinks(std::vector<std::unique_ptr<VerbsLink>> links,
                       std::shared_ptr<VerbsCommon> common, bool oversubscribed)
    : LinkGroup(as_links(links)), common_(std::move(common)), oversubscribed_(oversubscribed) {
  for (size_t rank = 0; rank < links.size(); ++rank)
    by_rank_.push_back(static_cast<VerbsLink*>(link(int(rank))));
}

VerbsLinks::~VerbsLinks() {
  const auto for_all = [&](const auto& act) {
    for (VerbsLink* link : by_rank_) {
      if (link != nullptr) act(link->channel());
    }
  };
  try {
    drain(Deadline::after(kLastWords));
    for_all([](VerbsChannel& channel) { channel.say_end(); });
    drain(Deadline::after(kLastWords));
  } catch (const Error&) {
    // The peers see the connections end without a word.
  }
  for_all([](VerbsChannel& channel) { channel.close(); });
}

void VerbsLinks::drain(Deadline deadline) {
  const auto is_idle = [](VerbsLink* link) { return link == nullptr || link->channel().is_idle(); };
  Backoff backoff(oversubscribed_, kLastWords);
  while (!std::ranges::all_of(by_rank_, is_idle) && !deadline.expired() && backoff.keep_awake())
    before_look(0);
}

void VerbsLinks::stop() noexcept {
  for (VerbsLink* link : by_rank_) {
    if (link != nullptr) link->stop();
  }
}

WaitPolicy VerbsLinks::wait_policy() const { return {oversubscribed_, kVerbsYieldTime}; }

void VerbsLinks::before_look(size_t /*open*/) {
  for (const auto& device : common_->devices) poll(*device);
}

void VerbsLinks::poll(VerbsDevice& device) {
  std::array<ibv_wc, 32> completions;
  for (size_t count = completions.size(); count == completions.size();) {
    count = device.poll(completions);
    for (const ibv_wc& completion : std::span(completions).first(count)) {
      const WorkId id = parse_work_id(completion.wr_id);
      by_rank_[id.peer]->complete(id, completion);
    }
  }
}

// The next look, which finds what has come before this, follows.
void VerbsLinks::arm(Wake /*how*/) {
  for (const auto& device : common_->devices) device->arm();
}

void VerbsLinks::add_handles(std::span<const Interest> /*interests*/,
                             std::vector<pollfd>& entries) {
  for (const auto& device : common_->devices) {
    entries.push_back({device->completion_fd(), POLLIN, 0});
    entries.push_back({device->event_fd(), POLLIN, 0});
  }
}

void VerbsLinks::after_poll(std::span<const Interest> /*interests*/,
                            std::span<const pollfd> entries) {
  for (size_t i = 0; i < common_->devices.size(); ++i) {
    if (entries[2 * i].revents != 0) common_->devices[i]->take_wakeups();
    common_->devices[i]->take_events();
  }
}

}  // namespace gxp
