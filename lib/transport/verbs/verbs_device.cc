#include "lib/transport/verbs/verbs_device.h"

#include <fcntl.h>

#include <cerrno>

#include "lib/base/log.h"

namespace gxp {

namespace {

void set_non_blocking(int fd) {
  const long flags = check_sys(::fcntl(fd, F_GETFL), "read the flags of an RDMA descriptor");
  check_sys(::fcntl(fd, F_SETFL, int(flags) | O_NONBLOCK), "set up an RDMA descriptor");
}

VerbsHandle<ibv_context> open_port(const VerbsFunctions& verbs, const VerbsPort& port) {
  int count = 0;
  const std::unique_ptr<ibv_device*, void (*)(ibv_device**)> devices(verbs.get_device_list(&count),
                                                                     verbs.free_device_list);
  for (int i = 0; devices && i < count; ++i) {
    ibv_device* const device = devices.get()[i];
    if (std::string_view(device->name) == port.device.data())
      return own_verbs(verbs.open_device(device), verbs.close_device, "open", device->name);
  }
  fail(ErrorKind::kDevice, "open {}: it is gone", port.device.data());
}

}  // namespace

VerbsDevice::VerbsDevice(const VerbsFunctions& verbs, const VerbsPort& port, int completions,
                         Deadline::Duration patience)
    : verbs_(verbs),
      port_(port),
      patience_(patience),
      context_(open_port(verbs, port)),
      domain_(own_verbs(verbs.alloc_pd(context_.get()), verbs.dealloc_pd,
                        "make a protection domain", name())),
      channel_(own_verbs(verbs.create_comp_channel(context_.get()), verbs.destroy_comp_channel,
                         "make a completion channel", name())),
      queue_(own_verbs(verbs.create_cq(context_.get(), completions, nullptr, channel_.get(), 0),
                       verbs.destroy_cq,
                       fmt::format("make a completion queue of {} entries", completions), name())) {
  set_non_blocking(channel_->fd);
  set_non_blocking(context_->async_fd);
}

size_t VerbsDevice::poll(std::span<ibv_wc> into) {
  const int count = ibv_poll_cq(queue_.get(), int(into.size()), into.data());
  if (count < 0) fail_verbs(ErrorKind::kDevice, "read completions", name(), EIO);
  return size_t(count);
}

void VerbsDevice::arm() {
  const int error = ibv_req_notify_cq(queue_.get(), 0);
  if (error != 0)
    fail_verbs(ErrorKind::kDevice, "request a completion notification", name(), error);
}

void VerbsDevice::take_wakeups() {
  ibv_cq* queue = nullptr;
  void* unused = nullptr;
  unsigned count = 0;
  while (verbs_.get_cq_event(channel_.get(), &queue, &unused) == 0) ++count;
  if (count > 0) verbs_.ack_cq_events(queue_.get(), count);
}

void VerbsDevice::take_events() {
  ibv_async_event event{};
  while (verbs_.get_async_event(context_.get(), &event) == 0) {
    const ibv_async_event copy = event;
    verbs_.ack_async_event(&event);
    note(copy);
  }
  if (down_until_ && down_until_->expired())
    fail(ErrorKind::kDevice, "{} has been down for {:g} s; check its cable and switch", name(),
         down_until_->seconds());
}

// What happens to one queue pair also ends a work request, which names the peer.
void VerbsDevice::note(const ibv_async_event& event) {
  const bool mine = event.element.port_num == int(port_.port);
  switch (event.event_type) {
    case IBV_EVENT_PORT_ERR:
      if (!mine) return;
      log_warn("transport: verbs: {} is down", name());
      down_until_ = Deadline::after(patience_);
      return;
    case IBV_EVENT_PORT_ACTIVE:
      if (!mine || !down_until_) return;
      log_info("transport: verbs: {} is up again", name());
      down_until_.reset();
      return;
    case IBV_EVENT_DEVICE_FATAL:
    case IBV_EVENT_CQ_ERR:
      fail(ErrorKind::kDevice, "{} has failed: {}; see dmesg", name(),
           verbs_.event_type_str(event.event_type));
    default:
      return;
  }
}

}  // namespace gxp
