// Waits for the peers of a rank, whatever links lead to them: it pauses, yields, and then sleeps on
// the bell of the only group of links, or in one poll() over the handles of all.
#pragma once

#include <poll.h>

#include <algorithm>
#include <span>
#include <vector>

#include "lib/base/deadline.h"
#include "lib/base/fd.h"
#include "lib/transport/backoff.h"
#include "lib/transport/link.h"

namespace gxp {

class LinkWaiter {
 public:
  // The groups outlive the waiter.
  explicit LinkWaiter(std::vector<LinkGroup*> groups);

  // Before each check of the `open` links with operations.
  void before_look(size_t open) {
    for (LinkGroup* group : groups_) group->before_look(open);
  }
  // The group with the most patience decides how long to pause, the one with the least whether to
  // yield.
  [[nodiscard]] Backoff backoff() const {
    return {wait_policy_.oversubscribed, wait_policy_.yield_time};
  }
  // Sleeps until a peer of interest may have moved or closed, wake() is called, or the deadline
  // passes. Does not sleep if `found()`, which is called when actions of peers already end the
  // sleep.
  template <class Found>
  void sleep(std::span<const Interest> interests, Deadline deadline, const Found& found) {
    const Armed armed(*this);
    if (!found()) sleep_armed(interests, deadline);
  }
  // Ends the sleep, and all later ones at once: an abort is final. Any thread.
  void wake() noexcept;

 private:
  struct Armed {
    explicit Armed(LinkWaiter& waiter_in) : waiter(waiter_in) {
      for (LinkGroup* group : waiter.groups_) group->arm(waiter.how_);
    }
    ~Armed() {
      for (LinkGroup* group : waiter.groups_) group->disarm();
    }
    LinkWaiter& waiter;
  };
  void sleep_armed(std::span<const Interest> interests, Deadline deadline);

  std::vector<LinkGroup*> groups_;
  LinkGroup::Wake how_;
  WaitPolicy wait_policy_;
  Fd wake_;  // invalid where the bell does
  std::vector<pollfd> entries_;
  std::vector<size_t> ends_;  // of each group's entries
};

}  // namespace gxp
