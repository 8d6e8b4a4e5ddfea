#include "lib/transport/verbs/verbs_channel.h"

#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "lib/base/bytes.h"
#include "lib/transport/verbs/verbs_library.h"

namespace gxp {
namespace {

struct Remedy {
  ibv_wc_status status;
  std::string_view act;
  std::string_view text;
};

// InfiniBand Architecture Specification, volume 1, section 10.10.3: what each status means.
constexpr std::array kRemedies{
    Remedy{IBV_WC_RETRY_EXC_ERR, "cannot be reached",
           "is its process running, and the network (cables, switch, PFC, GIDs) intact?"},
    Remedy{IBV_WC_RESP_TIMEOUT_ERR, "cannot be reached",
           "is its process running, and the network intact?"},
    Remedy{IBV_WC_RNR_RETRY_EXC_ERR, "takes nothing",
           "it has no receive posted; this is a bug in gxp"},
    Remedy{IBV_WC_REM_ACCESS_ERR, "refuses a write",
           "its memory is no longer registered: has it ended, or do the ranks run different "
           "programs?"},
    Remedy{IBV_WC_REM_INV_REQ_ERR, "refuses a request", "do the ranks run different programs?"},
    Remedy{IBV_WC_REM_OP_ERR, "failed at a request", "see dmesg on its host"},
    Remedy{IBV_WC_LOC_PROT_ERR, "cannot be sent to",
           "this rank's memory was unmapped while it was sent"},
    Remedy{IBV_WC_LOC_QP_OP_ERR, "cannot be sent to", "see dmesg on this host"},
    Remedy{IBV_WC_FATAL_ERR, "cannot be sent to", "see dmesg on this host"},
    Remedy{IBV_WC_WR_FLUSH_ERR, "has lost its connection",
           "the port or device has dropped it; see dmesg"},
};

// Why a connection has failed, in words for the user.

// Text that follows "rank 3": "cannot be reached by RDMA from mlx5_0 port 1 (...): transport retry
// counter exceeded (12/0x81); is its process running, and the network between whole?". `lane`
// names both ends.
std::string describe_failure(const VerbsFunctions& verbs, const ibv_wc& completion,
                             const std::string& lane) {
  Remedy found{completion.status, "has lost its connection", "see dmesg on both hosts"};
  for (const Remedy& remedy : kRemedies) {
    if (remedy.status == completion.status) found = remedy;
  }
  return fmt::format("{} by RDMA from {}: {} (status {}, vendor {:#x}); {}", found.act, lane,
                     verbs.wc_status_str(completion.status), int(completion.status),
                     completion.vendor_err, found.text);
}

constexpr uint32_t kVerbsMagic = 0x31767867;  // "gxv1"
constexpr size_t kLastSlot = size_t(kReceiveSlots + kSendSlots);

}  // namespace

LaneCut cut_over_lanes(size_t bytes, size_t lanes) {
  constexpr size_t kPage = 4096;
  const size_t most = std::clamp<size_t>(bytes / kLeastPerLane, 1, lanes);
  const size_t share = round_up((bytes + most - 1) / most, kPage);
  return {(bytes + share - 1) / share, share};
}

VerbsRegion::VerbsRegion(VerbsRegistrations& registrations, size_t bytes, VerbsOrder order)
    : bytes_(bytes) {
  void* const memory =
      ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) check_sys(-1, "map memory for RDMA");
  ::madvise(memory, bytes, MADV_DONTFORK);
  data_ = static_cast<std::byte*>(memory);
  try {
    registration_ = registrations.use({data_, bytes}, order);
  } catch (...) {
    ::munmap(memory, bytes);
    throw;
  }
}

VerbsRegion::~VerbsRegion() {
  registration_.reset();
  ::munmap(data_, bytes_);
}

VerbsChannel::VerbsChannel(int peer, std::vector<VerbsRoute> routes,
                           VerbsRegistrations& registrations, size_t slot_bytes)
    : peer_(peer),
      routes_(std::move(routes)),
      slot_bytes_(slot_bytes),
      slots_(registrations, (kLastSlot + 1) * slot_bytes, VerbsOrder::kStrict) {
  for (size_t i = kReceiveSlots; i < kLastSlot; ++i) free_slots_.push_back(uint16_t(i));
}

RegisteredBytes VerbsChannel::slot(size_t index, size_t bytes) const {
  return {slots_.data() + index * slot_bytes_, bytes,
          slots_.registration().local_key(routes_[0].device)};
}

void VerbsChannel::post_receives() {
  for (size_t i = 0; i < kReceiveSlots; ++i) recycle(0, uint16_t(i));
  for (size_t lane = 1; lane < routes_.size(); ++lane) {
    for (size_t i = 0; i < kGrants; ++i) recycle(lane, 0);
  }
}

void VerbsChannel::recycle(size_t lane, uint16_t index) {
  routes_[lane].lane->receive(index, lane == 0 ? slot(index, slot_bytes_) : RegisteredBytes{});
}

bool VerbsChannel::send(VerbsHeader header, ConstMemory body) {
  VerbsLane& lane = *routes_[0].lane;
  const bool is_message = header.kind == VerbsKind::kPayload || header.kind == VerbsKind::kAnnounce;
  if (!is_open() || free_slots_.empty() || lane.room() == 0) return false;
  if (is_message && credits_ == 0) return false;
  if (is_message) --credits_;
  header.magic = kVerbsMagic;
  header.credits = take_owed();
  header.body_bytes = uint32_t(body.bytes);
  const uint16_t index = free_slots_.front();
  free_slots_.pop_front();
  const RegisteredBytes memory = slot(index, sizeof header + body.bytes);
  std::memcpy(memory.data, &header, sizeof header);
  if (body.bytes > 0) std::memcpy(memory.data + sizeof header, body.data, body.bytes);
  lane.send(index, memory);
  return true;
}

uint8_t VerbsChannel::take_owed() { return uint8_t(std::exchange(owed_, 0)); }

bool VerbsChannel::can_write(size_t lane) const {
  const int kept = lane == 0 ? kSendSlots : 0;
  return is_open() && routes_[lane].lane->room() > kept;
}

bool VerbsChannel::return_credits() {
  return owed_ >= kMessageCredits / 2 && send({.kind = VerbsKind::kCredits}, {});
}

void VerbsChannel::say_end() noexcept {
  if (ended_.exchange(true)) return;
  const VerbsHeader header{.magic = kVerbsMagic, .kind = VerbsKind::kEnd};
  const RegisteredBytes memory = slot(kLastSlot, sizeof header);
  std::memcpy(memory.data, &header, sizeof header);
  routes_[0].lane->send_last(uint16_t(kLastSlot), memory);
}

void VerbsChannel::give_up(bool at_once) noexcept {
  given_up_ = true;
  if (!at_once) return;
  cut_ = true;
  for (const VerbsRoute& route : routes_) route.lane->stop();
}

bool VerbsChannel::is_idle() const {
  if (cut_ || !failure_.empty()) return true;
  if (ended_ && !end_sent_) return false;
  if (given_up_) return true;
  return std::ranges::all_of(routes_, [](const VerbsRoute& it) { return it.lane->is_idle(); });
}

const VerbsHeader& VerbsChannel::take(uint16_t index, size_t bytes) {
  const auto& header = *reinterpret_cast<const VerbsHeader*>(slot(index, 0).data);
  if (bytes < sizeof header || header.magic != kVerbsMagic ||
      header.body_bytes != bytes - sizeof header)
    fail_corrupt("an invalid header");
  credits_ += header.credits;
  if (credits_ > kMessageCredits) fail_corrupt("more credits than it had");
  peer_ended_ |= header.kind == VerbsKind::kEnd;
  return header;
}

ConstMemory VerbsChannel::body_of(uint16_t index) const {
  const std::byte* const data = slot(index, 0).data;
  return {data + sizeof(VerbsHeader), reinterpret_cast<const VerbsHeader*>(data)->body_bytes};
}

void VerbsChannel::release_message(uint16_t index) {
  recycle(0, index);
  ++owed_;
}

void VerbsChannel::on_sent(size_t lane, uint16_t index) {
  if (index == kLastSlot) {
    end_sent_ = true;
    return;
  }
  routes_[lane].lane->on_sent();
  free_slots_.push_back(index);
}

// The first failure is the cause; the queue pair then ends all other requests.
void VerbsChannel::on_failure(const WorkId& id, const ibv_wc& completion) {
  if (!failure_.empty()) return;
  const VerbsLane& lane = *routes_[id.lane].lane;
  failure_ = describe_failure(lane.device().verbs(), completion, lane.description());
}

// A peer that has ended has taken what it waited for, so what is on its way to it still completes.
std::string_view VerbsChannel::closed() const {
  if (peer_ended_) return is_idle() ? "closed its connection" : "";
  return failure_;
}

void VerbsChannel::fail_corrupt(std::string_view what) const {
  fail(ErrorKind::kPeer, "receive from rank {} by RDMA: it sent {}", peer_, what);
}

}  // namespace gxp
