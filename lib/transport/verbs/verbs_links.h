// The RDMA links of a rank: one look takes the completions of all, and a sleep ends with the next
// completion or event of any device.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "lib/transport/verbs/verbs_link.h"

namespace gxp {

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
