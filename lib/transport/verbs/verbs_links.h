// The RDMA links of a rank: one look takes the completions of all, and a sleep ends with the next
// completion or event of any device.
#pragma once

#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "lib/transport/link.h"
#include "lib/transport/verbs/verbs_receiver.h"
#include "lib/transport/verbs/verbs_sender.h"

namespace gxp {

// What all links of a rank use.
struct VerbsCommon {
  VerbsFunctions verbs{};
  std::vector<std::unique_ptr<VerbsDevice>> devices{};  // by the rank's own ports
  std::unique_ptr<VerbsRegistrations> registrations{};
  VerbsGpu gpu{};
};

// One peer's link: its sends, its receives, and the handling of their completions.
class VerbsLink final : public PeerLink {
 public:
  // Owners of `common`: the links, and their group, which goes first.
  VerbsLink(std::shared_ptr<VerbsCommon> common, int peer, std::vector<VerbsRoute> routes,
            size_t slot_bytes)
      : common_(std::move(common)),
        channel_(peer, std::move(routes), *common_->registrations, slot_bytes),
        sender_(channel_, *common_->registrations),
        receiver_(peer, channel_, *common_->registrations, common_->gpu) {}

  bool supports_memory(MemorySpace space) const override {
    return space == MemorySpace::kHost || common_->gpu.device != nullptr;
  }
  void post_send(PendingMessage& send) override;
  void post_receive(PendingMessage& receive) override { receiver_.post(receive); }
  bool progress() override;
  std::string_view closed() const override { return channel_.closed(); }
  bool failed() const override { return channel_.failed(); }
  void shut_down(std::string_view /*reason*/) noexcept override { channel_.say_end(); }

  // For the group.
  [[nodiscard]] VerbsChannel& channel() { return channel_; }
  // Handles the completion of one of this link's requests, which succeeded or failed.
  void complete(const WorkId& id, const ibv_wc& completion);
  // The operations and their memory are gone. If a device may still use that memory, the connection
  // is cut; else the peer is notified first.
  void stop() noexcept;

 private:
  void take_message(uint16_t slot, size_t bytes);

  std::shared_ptr<VerbsCommon> common_;
  VerbsChannel channel_;
  VerbsSender sender_;
  VerbsReceiver receiver_;
  bool moved_ = false;  // completions have come since the last look
  bool stopped_ = false;
};

class VerbsLinks final : public LinkGroup {
 public:
  // `links` by rank, null where there is none.
  VerbsLinks(std::vector<std::unique_ptr<VerbsLink>> links, std::shared_ptr<VerbsCommon> common,
             bool oversubscribed);
  // Waits up to 1 s until peers have what was sent, then notifies them that this rank ends.
  ~VerbsLinks() override;

  WaitPolicy wait_policy() const override;
  void keep(ConstMemory memory) override { common_->registrations->keep(memory); }
  void forget(ConstMemory memory) noexcept override { common_->registrations->forget(memory); }
  void stop() noexcept override;
  void before_look(size_t open) override;
  void arm(Wake how) override;
  void add_handles(std::span<const Interest> interests, std::vector<pollfd>& entries) override;
  void after_poll(std::span<const Interest> interests, std::span<const pollfd> entries) override;

 private:
  void poll(VerbsDevice& device);
  void drain(Deadline deadline);

  std::vector<VerbsLink*> by_rank_;
  std::shared_ptr<VerbsCommon> common_;  // owners: the links and this
  bool oversubscribed_;
};

}  // namespace gxp
