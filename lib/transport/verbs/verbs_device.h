// An open RDMA port with what all links share on it: the protection domain, and one completion
// queue with its channel.
//   Errors   kDevice: the system refuses something, or the device has failed.
#pragma once

#include <chrono>
#include <optional>
#include <span>
#include <string>

#include "lib/base/deadline.h"
#include "lib/transport/verbs/verbs_library.h"
#include "lib/transport/verbs/verbs_ports.h"

namespace gxp {

class VerbsDevice {
 public:
  // `completions`: the capacity of the queue. `patience`: how long the port may be down.
  // `verbs` outlives this.
  VerbsDevice(const VerbsFunctions& verbs, const VerbsPort& port, int completions,
              Deadline::Duration patience);

  [[nodiscard]] const VerbsFunctions& verbs() const { return verbs_; }
  [[nodiscard]] const VerbsPort& port() const { return port_; }
  [[nodiscard]] std::string name() const { return to_string(port_); }
  [[nodiscard]] ibv_pd* domain() const { return domain_.get(); }
  [[nodiscard]] ibv_cq* completions() const { return queue_.get(); }

  // Takes what is in the completion queue; returns how many.
  size_t poll(std::span<ibv_wc> into);
  // The next completion makes completion_fd() readable, until take_wakeups().
  void arm();
  [[nodiscard]] int completion_fd() const { return channel_->fd; }
  void take_wakeups();

  // Readable when something has happened to the port, the device or a queue pair.
  [[nodiscard]] int event_fd() const { return context_->async_fd; }
  // Reads the pending events and logs port events. Throws if the device has failed, or if the port
  // has been down for too long. Call it every 0.5 s also without an event.
  void take_events();

 private:
  void note(const ibv_async_event& event);

  const VerbsFunctions& verbs_;
  const VerbsPort port_;
  const Deadline::Duration patience_;
  VerbsHandle<ibv_context> context_;
  VerbsHandle<ibv_pd> domain_;
  VerbsHandle<ibv_comp_channel> channel_;
  VerbsHandle<ibv_cq> queue_;
  std::optional<Deadline> down_until_;  // while the port is down
};

}  // namespace gxp
