// The functions of libibverbs that gxp loads, over the fabric.
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "tests/transport/fake_verbs/fabric.h"

using gxp::Fabric;
using gxp::FakeChannel;
using gxp::FakeCompletion;
using gxp::FakeContext;
using gxp::FakePair;
using gxp::FakeQueue;

#undef ibv_query_port
#undef ibv_reg_mr

namespace {

Fabric& fabric() { return Fabric::get(); }
std::lock_guard<std::mutex> hold() { return std::lock_guard(fabric().mutex); }

FakeContext& of(ibv_context* context) { return *reinterpret_cast<FakeContext*>(context); }
FakePair& of(ibv_qp* pair) { return *reinterpret_cast<FakePair*>(pair); }
FakeQueue& of(ibv_cq* queue) { return *reinterpret_cast<FakeQueue*>(queue); }

ibv_device* device_named(int number) {
  static std::array<ibv_device, gxp::kMaxFakeDevices> devices{};
  ibv_device& device = devices[size_t(number)];
  const std::string name = "fake" + std::to_string(number);
  const std::string file = "uverbs" + std::to_string(number);
  name.copy(device.name, sizeof device.name - 1);
  file.copy(device.dev_name, sizeof device.dev_name - 1);
  return &device;
}

int post_send(ibv_qp* qp, ibv_send_wr* request, ibv_send_wr** refused) {
  const auto lock = hold();
  FakePair& pair = of(qp);
  *refused = request;
  const bool sends = request->opcode == IBV_WR_SEND;
  if (const int error = fabric().refuses(sends ? "post_send" : "post_write", qp->context))
    return error;
  if (pair.sends_out == pair.wanted.cap.max_send_wr) return ENOMEM;
  ++pair.sends_out;
  pair.requests.push_back({*request, *request->sg_list});
  if (!fabric().shuffles) fabric().carry_out_all();
  return 0;
}

int post_recv(ibv_qp* qp, ibv_recv_wr* request, ibv_recv_wr** refused) {
  const auto lock = hold();
  FakePair& pair = of(qp);
  *refused = request;
  if (const int error = fabric().refuses("post_recv", qp->context)) return error;
  if (pair.receives_out == pair.wanted.cap.max_recv_wr) return ENOMEM;
  ++pair.receives_out;
  pair.receives.push_back({request->wr_id, request->num_sge > 0 ? *request->sg_list : ibv_sge{}});
  if (pair.state == IBV_QPS_ERR) fabric().break_pair(pair);
  return 0;
}

int poll_cq(ibv_cq* cq, int most, ibv_wc* into) {
  const auto lock = hold();
  if (fabric().refuses("poll_cq", cq->context) != 0) return -1;
  auto& completions = of(cq).completions;
  // Who looks does some of the work: many that look would keep the fabric's thread from it.
  if (fabric().shuffles && completions.empty()) fabric().carry_out_one();
  int count = 0;
  for (; count < most && !completions.empty(); ++count) {
    const FakeCompletion done = completions.front();
    completions.pop_front();
    into[count] = done.completion;
    const auto pair = fabric().pairs.find(done.completion.qp_num);
    if (pair != fabric().pairs.end())
      --(done.receives ? pair->second->receives_out : pair->second->sends_out);
  }
  return count;
}

int req_notify_cq(ibv_cq* cq, int) {
  const auto lock = hold();
  of(cq).armed = true;
  return fabric().refuses("req_notify_cq", cq->context);
}

// Whether the call is to fail; then errno says why.
bool refuses(const char* function, const ibv_context* context) {
  const int error = fabric().refuses(function, context);
  if (error != 0) errno = error;
  return error != 0;
}

ibv_mr* add_region(ibv_pd* domain, size_t length, uint64_t iova, unsigned access,
                   std::byte* bytes) {
  auto* const made = new gxp::FakeRegion{.device = of(domain->context).device,
                                         .access = access,
                                         .first_address = iova,
                                         .bytes = bytes};
  made->region.pd = domain;
  made->region.length = length;
  made->region.lkey = made->region.rkey = fabric().next_number++;
  fabric().regions[made->region.rkey] = made;
  return &made->region;
}

// Reads one event of a descriptor as its flags say.
template <class Event>
bool take_event(int fd, std::deque<Event>& events, Event& event) {
  eventfd_t count = 0;
  if (eventfd_read(fd, &count) != 0) return false;
  const auto lock = hold();
  event = events.front();
  events.pop_front();
  return true;
}

}  // namespace

extern "C" {

gxp::FakeVerbs* gxp_fake_verbs() { return &fabric(); }

// The kernel copies.
ibv_fork_status ibv_is_fork_initialized() { return IBV_FORK_UNNEEDED; }

int ibv_fork_init() { return EINVAL; }

ibv_device** ibv_get_device_list(int* count) {
  const auto lock = hold();
  auto** const list = new ibv_device* [gxp::kMaxFakeDevices + 1] {};
  for (int i = 0; i < fabric().devices; ++i) list[i] = device_named(i);
  *count = fabric().devices;
  return list;
}

void ibv_free_device_list(ibv_device** list) { delete[] list; }

ibv_context* ibv_open_device(ibv_device* device) {
  const auto lock = hold();
  errno = fabric().open_error;
  if (errno != 0) return nullptr;
  ibv_context wanted{};
  wanted.device = device;
  if (refuses("ibv_open_device", &wanted)) return nullptr;
  auto* const made = new FakeContext;
  made->device = device->name[4] - '0';
  made->context.device = device;
  made->context.ops.post_send = post_send;
  made->context.ops.post_recv = post_recv;
  made->context.ops.poll_cq = poll_cq;
  made->context.ops.req_notify_cq = req_notify_cq;
  made->context.async_fd = eventfd(0, EFD_SEMAPHORE | EFD_CLOEXEC);
  fabric().contexts.insert(made);
  return &made->context;
}

int ibv_close_device(ibv_context* context) {
  const auto lock = hold();
  fabric().contexts.erase(&of(context));
  close(context->async_fd);
  delete &of(context);
  return 0;
}

int ibv_query_device(ibv_context* context, ibv_device_attr* attributes) {
  const auto lock = hold();
  if (const int error = fabric().refuses("ibv_query_device", context)) return error;
  *attributes = {};
  attributes->max_qp_wr = fabric().max_entries;
  attributes->max_cqe = 1 << 20;
  attributes->phys_port_cnt = 1;
  return 0;
}

int ibv_query_port(ibv_context* context, uint8_t, _compat_ibv_port_attr* into) {
  const auto lock = hold();
  if (const int error = fabric().refuses("ibv_query_port", context)) return error;
  auto& attributes = *reinterpret_cast<ibv_port_attr*>(into);
  attributes = {};
  const bool up = fabric().up[size_t(of(context).device)];
  attributes.state = up ? IBV_PORT_ACTIVE : IBV_PORT_DOWN;
  attributes.active_mtu = IBV_MTU_4096;
  attributes.lid = uint16_t(1 + of(context).device);
  attributes.link_layer = fabric().infiniband ? IBV_LINK_LAYER_INFINIBAND : IBV_LINK_LAYER_ETHERNET;
  return 0;
}

// As cards have them: link-local and mapped, each as RoCE v1 and v2.
ssize_t _ibv_query_gid_table(ibv_context* context, ibv_gid_entry* entries, size_t, uint32_t,
                             size_t) {
  const auto last = uint8_t(1 + of(context).device);
  for (uint32_t i = 0; i < 4; ++i) {
    entries[i] = {};
    entries[i].gid_index = i;
    entries[i].port_num = 1;
    entries[i].gid_type = i % 2 == 0 ? IBV_GID_TYPE_ROCE_V1 : IBV_GID_TYPE_ROCE_V2;
    const std::array<uint8_t, 16> local{0xfe, 0x80, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, last};
    const std::array<uint8_t, 16> mapped{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 99, 0, last};
    std::memcpy(entries[i].gid.raw, (i < 2 ? local : mapped).data(), 16);
  }
  return 4;
}

ibv_pd* ibv_alloc_pd(ibv_context* context) {
  const auto lock = hold();
  if (refuses("ibv_alloc_pd", context)) return nullptr;
  auto* const made = new ibv_pd{};
  made->context = context;
  return made;
}

int ibv_dealloc_pd(ibv_pd* domain) {
  delete domain;
  return 0;
}

ibv_mr* ibv_reg_mr_iova2(ibv_pd* domain, void* address, size_t length, uint64_t iova,
                         unsigned access) {
  const auto lock = hold();
  if (refuses("ibv_reg_mr", domain->context)) return nullptr;
  if (length > fabric().lockable || fabric().locked > fabric().lockable - length) {
    errno = ENOMEM;
    return nullptr;
  }
  fabric().locked += length;
  return add_region(domain, length, iova, access, static_cast<std::byte*>(address));
}

ibv_mr* ibv_reg_mr(ibv_pd* domain, void* address, size_t length, int access) {
  return ibv_reg_mr_iova2(domain, address, length, reinterpret_cast<uintptr_t>(address),
                          unsigned(access));
}

ibv_mr* ibv_reg_dmabuf_mr(ibv_pd* domain, uint64_t offset, size_t length, uint64_t iova, int fd,
                          int access) {
  const auto lock = hold();
  struct stat file {};
  errno = fabric().dma_buf ? EBADF : EOPNOTSUPP;
  if (!fabric().dma_buf || fstat(fd, &file) != 0) return nullptr;
  errno = EINVAL;
  if (offset + length > size_t(file.st_size) || iova % 4096 != offset % 4096) return nullptr;
  void* const mapping =
      mmap(nullptr, size_t(file.st_size), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  ibv_mr* const made =
      add_region(domain, length, iova, unsigned(access), static_cast<std::byte*>(mapping) + offset);
  fabric().regions[made->rkey]->mapping = mapping;
  fabric().regions[made->rkey]->mapped_bytes = size_t(file.st_size);
  return made;
}

int ibv_dereg_mr(ibv_mr* region) {
  const auto lock = hold();
  auto* const fake = reinterpret_cast<gxp::FakeRegion*>(region);
  if (fake->mapping == nullptr) {
    fabric().locked -= region->length;
  } else {
    munmap(fake->mapping, fake->mapped_bytes);
  }
  fabric().regions.erase(region->rkey);
  delete fake;
  return 0;
}

ibv_comp_channel* ibv_create_comp_channel(ibv_context* context) {
  const auto lock = hold();
  if (refuses("ibv_create_comp_channel", context)) return nullptr;
  auto* const made = new FakeChannel;
  made->channel.context = context;
  made->channel.fd = eventfd(0, EFD_SEMAPHORE | EFD_CLOEXEC);
  return &made->channel;
}

int ibv_destroy_comp_channel(ibv_comp_channel* channel) {
  close(channel->fd);
  delete reinterpret_cast<FakeChannel*>(channel);
  return 0;
}

ibv_cq* ibv_create_cq(ibv_context* context, int entries, void*, ibv_comp_channel* channel, int) {
  const auto lock = hold();
  if (refuses("ibv_create_cq", context)) return nullptr;
  auto* const made = new FakeQueue;
  made->cq.context = context;
  made->capacity = size_t(entries);
  made->channel = reinterpret_cast<FakeChannel*>(channel);
  return &made->cq;
}

int ibv_destroy_cq(ibv_cq* cq) {
  const auto lock = hold();
  delete &of(cq);
  return 0;
}

int ibv_get_cq_event(ibv_comp_channel* channel, ibv_cq** cq, void**) {
  return take_event(channel->fd, reinterpret_cast<FakeChannel*>(channel)->events, *cq) ? 0 : -1;
}

void ibv_ack_cq_events(ibv_cq*, unsigned) {}

ibv_qp* ibv_create_qp(ibv_pd* domain, ibv_qp_init_attr* wanted) {
  const auto lock = hold();
  if (refuses("ibv_create_qp", domain->context)) return nullptr;
  if (int(wanted->cap.max_send_wr) > fabric().max_entries) {
    errno = EINVAL;
    return nullptr;
  }
  auto* const made = new FakePair;
  made->wanted = *wanted;
  made->device = of(domain->context).device;
  made->qp.context = domain->context;
  made->qp.send_cq = wanted->send_cq;
  made->qp.recv_cq = wanted->recv_cq;
  made->qp.qp_num = fabric().next_number++;
  fabric().pairs[made->qp.qp_num] = made;
  return &made->qp;
}

int ibv_modify_qp(ibv_qp* qp, ibv_qp_attr* attributes, int mask) {
  const auto lock = hold();
  if (const int error = fabric().refuses("ibv_modify_qp", qp->context)) return error;
  if ((mask & IBV_QP_DEST_QPN) != 0) of(qp).peer = attributes->dest_qp_num;
  of(qp).state = attributes->qp_state;
  if (attributes->qp_state == IBV_QPS_ERR) fabric().break_pair(of(qp));
  return 0;
}

int ibv_destroy_qp(ibv_qp* qp) {
  const auto lock = hold();
  fabric().pairs.erase(qp->qp_num);
  delete &of(qp);
  return 0;
}

int ibv_get_async_event(ibv_context* context, ibv_async_event* event) {
  gxp::FakeEvent told;
  if (!take_event(context->async_fd, of(context).events, told)) return -1;
  event->event_type = told.type;
  event->element.port_num = told.port;
  return 0;
}

void ibv_ack_async_event(ibv_async_event*) {}

const char* ibv_wc_status_str(ibv_wc_status status) {
  return status == IBV_WC_RETRY_EXC_ERR ? "transport retry counter exceeded" : "some status";
}

const char* ibv_event_type_str(ibv_event_type) { return "some event"; }

}  // extern "C"
