#include "lib/transport/verbs/verbs_lane.h"

#include <arpa/inet.h>
#include <sodium.h>

#include <algorithm>
#include <cstring>

namespace gxp {

namespace {

constexpr uint32_t kPacketMask = 0xffffff;

// A packet is sent again up to so many times. With 7 Soft-RoCE would try for ever.
constexpr uint8_t kRetries = 6;
// A receiver that is not ready is our mistake (verbs_budget.h); then this is the end of it.
constexpr uint8_t kNotReadyRetries = 6;
constexpr uint8_t kNotReadyTimer = 12;  // 0.64 ms
// 4.096 us * 2^17 = 0.54 s between two attempts; all of them last 3.8 s.
constexpr uint8_t kLongestTimeout = 17;
constexpr uint8_t kShortestTimeout = 14;
constexpr uint8_t kMostHops = 255;

uint8_t timeout_within(double seconds) {
  uint8_t timeout = kLongestTimeout;
  const auto all_attempts = [&] { return 4.096e-6 * double(1u << timeout) * (kRetries + 1); };
  while (timeout > kShortestTimeout && all_attempts() > seconds) --timeout;
  return timeout;
}

uint64_t to_number(const WorkId& id) {
  return uint64_t{id.peer} | uint64_t{id.slot} << 32 | uint64_t{id.lane} << 48 |
         uint64_t(id.kind) << 56;
}

ibv_sge element_of(const RegisteredBytes& memory) {
  return {uint64_t(reinterpret_cast<uintptr_t>(memory.data)), uint32_t(memory.bytes),
          memory.local_key};
}

ibv_ah_attr address_of(const VerbsPort& mine, const LanePath& path) {
  const VerbsGid& source = mine.gids[size_t(path.kind)];
  const VerbsGid& target = path.peers_port.gids[size_t(path.kind)];
  ibv_ah_attr address{};
  address.dlid = path.peers_port.lid;
  address.port_num = uint8_t(mine.port);
  // InfiniBand needs a global header only between subnets, which are the GIDs' first halves.
  address.is_global =
      uint8_t(mine.ethernet ||
              !std::equal(source.bytes.begin(), source.bytes.begin() + 8, target.bytes.begin()));
  std::memcpy(address.grh.dgid.raw, target.bytes.data(), target.bytes.size());
  address.grh.sgid_index = uint8_t(source.index);
  address.grh.hop_limit = kMostHops;
  address.grh.traffic_class = path.traffic_class;
  return address;
}

}  // namespace

WorkId parse_work_id(uint64_t id) {
  return {WorkId::Kind(id >> 56), uint8_t(id >> 48), uint16_t(id >> 32), uint32_t(id)};
}

VerbsLane::VerbsLane(VerbsDevice& device, int peer, size_t index, int receives)
    : device_(device),
      peer_(peer),
      index_(index),
      first_packet_(randombytes_random() & kPacketMask),
      description_(device.name()),
      pair_(nullptr, device.verbs().destroy_qp) {
  ibv_qp_init_attr wanted{};
  wanted.send_cq = wanted.recv_cq = device.completions();
  wanted.qp_type = IBV_QPT_RC;
  wanted.cap.max_send_wr = uint32_t(kQueueEntries);
  wanted.cap.max_recv_wr = uint32_t(receives);
  wanted.cap.max_send_sge = wanted.cap.max_recv_sge = 1;
  pair_ = own_verbs(device.verbs().create_qp(device.domain(), &wanted), device.verbs().destroy_qp,
                    "make a queue pair", device.name());
}

void VerbsLane::modify(ibv_qp_attr& attributes, int mask, std::string_view act) {
  const int error = device_.verbs().modify_qp(pair_.get(), &attributes, mask | IBV_QP_STATE);
  if (error != 0)
    fail_verbs(ErrorKind::kDevice, fmt::format("{} to rank {}", act, peer_), description_, error);
}

void VerbsLane::connect(const LaneAddress& peer, const LanePath& path) {
  const VerbsPort& mine = device_.port();
  description_ = fmt::format("{} ({} to {}, queue pairs {} and {})", device_.name(),
                             to_string(mine.gids[size_t(path.kind)]),
                             to_string(path.peers_port.gids[size_t(path.kind)]), pair_->qp_num,
                             peer.queue_pair);
  ibv_qp_attr to{};
  to.qp_state = IBV_QPS_INIT;
  to.port_num = uint8_t(mine.port);
  to.pkey_index = path.pkey_index;
  to.qp_access_flags =
      IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | (path.reads ? IBV_ACCESS_REMOTE_READ : 0);
  modify(to, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS, "set up a queue pair");
  to.qp_state = IBV_QPS_RTR;
  to.path_mtu = ibv_mtu(std::min(mine.mtu, path.peers_port.mtu));
  to.dest_qp_num = peer.queue_pair;
  to.rq_psn = peer.first_packet & kPacketMask;
  to.max_dest_rd_atomic = 1;
  to.min_rnr_timer = kNotReadyTimer;
  to.ah_attr = address_of(mine, path);
  modify(to,
         IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
             IBV_QP_MIN_RNR_TIMER,
         "set the route of a queue pair");
  to.qp_state = IBV_QPS_RTS;
  to.timeout = timeout_within(path.patience_s);
  to.retry_cnt = kRetries;
  to.rnr_retry = kNotReadyRetries;
  to.sq_psn = first_packet_;
  to.max_rd_atomic = 1;
  modify(to,
         IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
             IBV_QP_MAX_QP_RD_ATOMIC,
         "open a queue pair");
}

void VerbsLane::receive(uint16_t slot, const RegisteredBytes& memory) {
  ibv_sge element = element_of(memory);
  ibv_recv_wr request{};
  request.wr_id = to_number({WorkId::Kind::kReceive, uint8_t(index_), slot, uint32_t(peer_)});
  request.sg_list = &element;
  request.num_sge = memory.bytes > 0 ? 1 : 0;
  ibv_recv_wr* refused = nullptr;
  const int error = ibv_post_recv(pair_.get(), &request, &refused);
  if (error != 0) fail_verbs(ErrorKind::kDevice, "post a receive", description_, error);
}

int VerbsLane::post(ibv_send_wr request, const WorkId& id, const RegisteredBytes& memory) {
  ibv_sge element = element_of(memory);
  request.wr_id = to_number(id);
  request.sg_list = &element;
  request.num_sge = 1;
  request.send_flags = IBV_SEND_SIGNALED;
  ibv_send_wr* refused = nullptr;
  return ibv_post_send(pair_.get(), &request, &refused);
}

int VerbsLane::post_send(uint16_t slot, const RegisteredBytes& memory) {
  ibv_send_wr request{};
  request.opcode = IBV_WR_SEND;
  return post(request, {WorkId::Kind::kSend, uint8_t(index_), slot, uint32_t(peer_)}, memory);
}

void VerbsLane::send(uint16_t slot, const RegisteredBytes& memory) {
  GXP_ASSERT(room_ > 0);
  const int error = post_send(slot, memory);
  if (error != 0) fail_verbs(ErrorKind::kDevice, "post a message", description_, error);
  --room_;
}

void VerbsLane::write(const RegisteredBytes& memory, uint64_t address, uint32_t remote_key,
                      const uint32_t* number) {
  GXP_ASSERT(room_ > 0);
  ibv_send_wr request{};
  request.opcode = number == nullptr ? IBV_WR_RDMA_WRITE : IBV_WR_RDMA_WRITE_WITH_IMM;
  if (number != nullptr) request.imm_data = htonl(*number);
  request.wr.rdma.remote_addr = address;
  request.wr.rdma.rkey = remote_key;
  const int error =
      post(request, {WorkId::Kind::kWrite, uint8_t(index_), 0, uint32_t(peer_)}, memory);
  if (error != 0) fail_verbs(ErrorKind::kDevice, "post a write", description_, error);
  --room_;
}

void VerbsLane::read(uint16_t slot, const RegisteredBytes& into, uint64_t address,
                     uint32_t remote_key) {
  GXP_ASSERT(room_ > 0);
  ibv_send_wr request{};
  request.opcode = IBV_WR_RDMA_READ;
  request.wr.rdma.remote_addr = address;
  request.wr.rdma.rkey = remote_key;
  const int error =
      post(request, {WorkId::Kind::kFlush, uint8_t(index_), slot, uint32_t(peer_)}, into);
  if (error != 0) fail_verbs(ErrorKind::kDevice, "post a read", description_, error);
  --room_;
}

void VerbsLane::send_last(uint16_t slot, const RegisteredBytes& memory) noexcept {
  static_cast<void>(post_send(slot, memory));  // a queue pair that has failed tells nobody any more
}

void VerbsLane::stop() noexcept {
  ibv_qp_attr to{};
  to.qp_state = IBV_QPS_ERR;
  static_cast<void>(device_.verbs().modify_qp(pair_.get(), &to, IBV_QP_STATE));
}

}  // namespace gxp
