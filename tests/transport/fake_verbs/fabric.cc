#include "tests/transport/fake_verbs/fabric.h"

#include <arpa/inet.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <chrono>
#include <cstring>

namespace gxp {

Fabric& Fabric::get() {
  static Fabric fabric;
  return fabric;
}

void Fabric::reset() {
  shuffle(false);
  const std::lock_guard lock(mutex);
  devices = 2;
  infiniband = false;
  open_error = 0;
  max_entries = 1024;
  lockable = SIZE_MAX;
  dma_buf = true;
  unseen.clear();
  flushes = 0;
  up.fill(true);
  cut_status = 0;
  fail_after = -1;
  missed_receives = 0;
  failing.clear();
  corruption = {};
  wrong_bits = 0;
  left = kForEver;
  gone.fill(false);
  written.fill(0);
}

void Fabric::shuffle(bool on) {
  change([&] { shuffles = on; });
  if (!on) {
    worker_ = {};
    const std::lock_guard lock(mutex);
    carry_out_all();
    return;
  }
  worker_ = std::jthread([this](const std::stop_token& stop) {
    while (!stop.stop_requested()) {
      {
        const std::lock_guard lock(mutex);
        for (int i = 0; i < 16 && carry_out_one(); ++i) {
        }
      }
      std::this_thread::yield();
    }
  });
}

void Fabric::fail_request(int after, int status) {
  const std::lock_guard lock(mutex);
  fail_after = after;
  fail_status = status;
}

void Fabric::fail_calls(std::string_view function, int device, int error_number, int after) {
  const std::lock_guard lock(mutex);
  failing = function;
  failing_device = device;
  failing_error = error_number;
  failing_after = after;
}

int Fabric::refuses(std::string_view function, const ibv_context* context) {
  if (function != failing || context->device->name[4] - '0' != failing_device) return 0;
  return failing_after-- > 0 ? 0 : failing_error;
}

void Fabric::lose_receives() {
  const std::lock_guard lock(mutex);
  for (const auto& [number, pair] : pairs) pair->receives.clear();  // their entries stay taken
}

void Fabric::set_port(int device, bool is_up) {
  tell_event(device, is_up ? IBV_EVENT_PORT_ACTIVE : IBV_EVENT_PORT_ERR, 1);
  const std::lock_guard lock(mutex);
  up[size_t(device)] = is_up;
  if (!shuffles) carry_out_all();
}

void Fabric::tell_event(int device, int type, int port) {
  const std::lock_guard lock(mutex);
  for (FakeContext* context : contexts) {
    if (context->device == device) raise(*context, {ibv_event_type(type), port});
  }
}

void Fabric::raise(FakeContext& context, FakeEvent event) {
  context.events.push_back(event);
  eventfd_write(context.context.async_fd, 1);
}

size_t Fabric::registered_regions() const {
  const std::lock_guard lock(mutex);
  return regions.size();
}

size_t Fabric::relaxed_regions() const {
  const std::lock_guard lock(mutex);
  return size_t(std::ranges::count_if(regions, [](const auto& each) {
    return (each.second->access & IBV_ACCESS_RELAXED_ORDERING) != 0;
  }));
}

uint64_t Fabric::bytes_written(int device) const {
  const std::lock_guard lock(mutex);
  return written[size_t(device)];
}

int Fabric::not_ready() const {
  const std::lock_guard lock(mutex);
  return missed_receives;
}

void Fabric::carry_out_all() {
  while (carry_out_one()) {
  }
}

// One request of a random queue pair, the oldest of that one.
bool Fabric::carry_out_one() {
  std::vector<FakePair*> ready;
  for (const auto& [number, pair] : pairs) {
    const auto device = size_t(pair->device);
    if (!pair->requests.empty() && up[device] && !gone[device]) ready.push_back(pair);
  }
  if (ready.empty()) return false;
  FakePair& pair = *ready[random_() % ready.size()];
  const FakeRequest request = pair.requests.front();
  pair.requests.pop_front();
  const ibv_wc_status status = carry_out(pair, request);
  ibv_wc done{};
  done.wr_id = request.request.wr_id;
  done.status = status;
  done.opcode = request.request.opcode == IBV_WR_SEND        ? IBV_WC_SEND
                : request.request.opcode == IBV_WR_RDMA_READ ? IBV_WC_RDMA_READ
                                                             : IBV_WC_RDMA_WRITE;
  done.qp_num = pair.qp.qp_num;
  done.vendor_err = status == IBV_WC_SUCCESS ? 0 : 0x81;
  complete(pair.qp.send_cq, {done, false});
  if (status != IBV_WC_SUCCESS) break_pair(pair);
  return true;
}

std::optional<ibv_wc_status> Fabric::injected() {
  if (cut_status != 0) return ibv_wc_status(cut_status);
  if (fail_after < 0 || fail_after-- > 0) return {};
  return ibv_wc_status(fail_status);
}

ibv_wc_status Fabric::carry_out(FakePair& pair, const FakeRequest& request) {
  if (pair.state != IBV_QPS_RTS) return IBV_WC_WR_FLUSH_ERR;
  if (int& more = left[size_t(pair.device)]; more > 0) --more;
  if (const auto status = injected()) return *status;
  const auto found = pairs.find(pair.peer);
  if (found == pairs.end()) return IBV_WC_RETRY_EXC_ERR;
  FakePair& to = *found->second;
  if (to.state != IBV_QPS_RTR && to.state != IBV_QPS_RTS) return IBV_WC_RETRY_EXC_ERR;
  gone[size_t(to.device)] |= left[size_t(to.device)] == 0;
  if (gone[size_t(to.device)]) return IBV_WC_RETRY_EXC_ERR;
  if (request.request.opcode == IBV_WR_SEND) return take_receive(pair, to, request);
  if (request.request.opcode == IBV_WR_RDMA_READ) return read(to, request);
  const ibv_wc_status status = write(pair, to, request);
  const bool tells = request.request.opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
  return tells && status == IBV_WC_SUCCESS ? take_receive(pair, to, request) : status;
}

std::byte* Fabric::find(uint32_t key, uint64_t address, size_t bytes, unsigned access) {
  const auto found = regions.find(key);
  if (found == regions.end()) return nullptr;
  const FakeRegion& region = *found->second;
  const uint64_t first = region.first_address;
  if (address < first || address + bytes > first + region.region.length) return nullptr;
  return (region.access & access) == access ? region.bytes + (address - first) : nullptr;
}

ibv_wc_status Fabric::write(const FakePair& pair, const FakePair& to, const FakeRequest& request) {
  const ibv_sge& from = request.memory;
  const std::byte* const source = find(from.lkey, from.addr, from.length, 0);
  if (source == nullptr) return IBV_WC_LOC_PROT_ERR;
  const uint32_t key = request.request.wr.rdma.rkey;
  std::byte* const target =
      find(key, request.request.wr.rdma.remote_addr, from.length, IBV_ACCESS_REMOTE_WRITE);
  if (target == nullptr) return IBV_WC_REM_ACCESS_ERR;
  written[size_t(pair.device)] += from.length;
  if (regions[key]->mapping == nullptr) {
    std::memcpy(target, source, from.length);
  } else {
    unseen.push_back({to.device, target, {source, source + from.length}});
  }
  return IBV_WC_SUCCESS;
}

// It pushes what the same device has written.
ibv_wc_status Fabric::read(const FakePair& to, const FakeRequest& request) {
  for (const UnseenWrite& each : unseen) {
    if (each.device == to.device) std::memcpy(each.target, each.bytes.data(), each.bytes.size());
  }
  std::erase_if(unseen, [&](const UnseenWrite& each) { return each.device == to.device; });
  ++flushes;
  const ibv_sge& into = request.memory;
  std::byte* const target = find(into.lkey, into.addr, into.length, IBV_ACCESS_LOCAL_WRITE);
  if (target == nullptr) return IBV_WC_LOC_PROT_ERR;
  const auto& from = request.request.wr.rdma;
  const std::byte* const source =
      find(from.rkey, from.remote_addr, into.length, IBV_ACCESS_REMOTE_READ);
  if (source == nullptr) return IBV_WC_REM_ACCESS_ERR;
  std::memcpy(target, source, into.length);
  return IBV_WC_SUCCESS;
}

ibv_wc_status Fabric::take_receive(FakePair& from, FakePair& to, const FakeRequest& request) {
  if (to.receives.empty()) {
    ++missed_receives;
    return IBV_WC_RNR_RETRY_EXC_ERR;
  }
  const FakeReceive receive = to.receives.front();
  to.receives.pop_front();
  const bool is_send = request.request.opcode == IBV_WR_SEND;
  if (is_send && request.memory.length > receive.memory.length) return IBV_WC_REM_INV_REQ_ERR;
  if (is_send)
    std::memcpy(reinterpret_cast<void*>(receive.memory.addr),
                reinterpret_cast<const void*>(request.memory.addr), request.memory.length);
  ibv_wc done{};
  done.wr_id = receive.id;
  done.opcode = is_send ? IBV_WC_RECV : IBV_WC_RECV_RDMA_WITH_IMM;
  done.byte_len = request.memory.length;
  if (is_send && corruption)
    done.byte_len = uint32_t(
        corruption({reinterpret_cast<std::byte*>(receive.memory.addr), request.memory.length}));
  done.imm_data = request.request.imm_data ^ htonl(wrong_bits);
  done.wc_flags = is_send ? 0 : IBV_WC_WITH_IMM;
  done.qp_num = to.qp.qp_num;
  done.src_qp = from.qp.qp_num;
  complete(to.qp.recv_cq, {done, true});
  return IBV_WC_SUCCESS;
}

void Fabric::complete(ibv_cq* cq, const FakeCompletion& done) {
  auto& queue = *reinterpret_cast<FakeQueue*>(cq);
  if (queue.completions.size() == queue.capacity)
    return raise(*reinterpret_cast<FakeContext*>(cq->context), {IBV_EVENT_CQ_ERR});
  queue.completions.push_back(done);
  if (!queue.armed || queue.channel == nullptr) return;
  queue.armed = false;
  queue.channel->events.push_back(cq);
  eventfd_write(queue.channel->channel.fd, 1);
}

// All that is posted ends.
void Fabric::break_pair(FakePair& pair) {
  pair.state = IBV_QPS_ERR;
  const auto flush = [&](uint64_t id, ibv_cq* queue, bool receives) {
    ibv_wc done{};
    done.wr_id = id;
    done.status = IBV_WC_WR_FLUSH_ERR;
    done.qp_num = pair.qp.qp_num;
    complete(queue, {done, receives});
  };
  for (const FakeRequest& request : pair.requests)
    flush(request.request.wr_id, pair.qp.send_cq, false);
  for (const FakeReceive& receive : pair.receives) flush(receive.id, pair.qp.recv_cq, true);
  pair.requests.clear();
  pair.receives.clear();
}

}  // namespace gxp
