#include "lib/transport/link_waiter.h"

#include <sys/eventfd.h>

#include <chrono>
#include <utility>

#include "lib/base/error.h"

namespace gxp {

namespace {

// Groups look after each sleep for what no handle tells, such as hosts that have fallen silent.
constexpr std::chrono::milliseconds kLongestPoll{500};

}  // namespace

LinkWaiter::LinkWaiter(std::vector<LinkGroup*> groups)
    : groups_(std::move(groups)),
      how_(groups_.size() == 1 && groups_[0]->has_bell() ? LinkGroup::Wake::kBell
                                                         : LinkGroup::Wake::kHandles),
      wait_policy_(groups_.empty() ? WaitPolicy{} : groups_[0]->wait_policy()) {
  for (const LinkGroup* group : groups_) {
    const WaitPolicy other = group->wait_policy();
    wait_policy_.oversubscribed &= other.oversubscribed;
    wait_policy_.yield_time = std::min(wait_policy_.yield_time, other.yield_time);
  }
  if (how_ == LinkGroup::Wake::kBell) return;
  wake_ = Fd(int(check_sys(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK), "make an event descriptor")));
}

void LinkWaiter::sleep_armed(std::span<const Interest> interests, Deadline deadline) {
  if (how_ == LinkGroup::Wake::kBell) return groups_[0]->sleep_on_bell(interests, deadline);
  entries_.assign(1, {wake_.get(), POLLIN, 0});
  ends_.clear();
  for (LinkGroup* group : groups_) {
    group->add_handles(interests, entries_);
    ends_.push_back(entries_.size());
  }
  ::poll(entries_.data(), entries_.size(),
         std::min(int(kLongestPoll.count()), deadline.remaining_ms()));
  size_t begin = 1;
  for (size_t i = 0; i < groups_.size(); ++i) {
    groups_[i]->after_poll(interests, std::span(entries_).subspan(begin, ends_[i] - begin));
    begin = ends_[i];
  }
}

void LinkWaiter::wake() noexcept {
  if (wake_.valid()) eventfd_write(wake_.get(), 1);
  for (LinkGroup* group : groups_) group->ring_own_bell();
}

}  // namespace gxp
