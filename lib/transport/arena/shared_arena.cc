#include "lib/transport/arena/shared_arena.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/membarrier.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>

#include "lib/base/bytes.h"
#include "lib/base/error.h"
#include "lib/base/resource_limits.h"
#include "lib/net/socket/unix_socket.h"

namespace gxp {
namespace {

std::string name_of_rank(size_t rank) { return fmt::format("rank {}", rank); }

size_t group_bytes(size_t ranks) {
  return ranks * (SharedSlots::kLines * sizeof(SharedLine) + sizeof(SharedPhase));
}
// As many ranks as have a place in the first page: 1,024.
size_t control_bytes(size_t ranks, size_t page) {
  return round_up(page + SharedArena::kGroups * group_bytes(ranks) + sizeof(uint64_t), page);
}

// Its own address in the process that owns the segment: nothing else there holds that.
uint64_t& signature(const ShmSegment& segment, size_t control_bytes) {
  return *reinterpret_cast<uint64_t*>(segment.memory().data + control_bytes - sizeof(uint64_t));
}

bool has_address_space(size_t bytes) {
  constexpr int kFlags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
  void* const address = mmap(nullptr, bytes, PROT_NONE, kFlags, -1, 0);
  return address != MAP_FAILED && munmap(address, bytes) == 0;
}

bool membarrier(int command) { return syscall(SYS_membarrier, command, 0, 0) == 0; }

static_assert(std::atomic<uint64_t>::is_always_lock_free);

}  // namespace

// The lower rank of each two makes the pair.
DescriptorChannels::DescriptorChannels(int rank, const std::vector<Fd>& sockets, Deadline deadline)
    : ends_(sockets.size()) {
  for (size_t peer = size_t(rank) + 1; peer < sockets.size(); ++peer) {
    if (!sockets[peer].valid()) continue;
    auto [mine, theirs] = make_message_sockets();
    send_fd(sockets[peer].get(), theirs.get(), name_of_rank(peer), deadline);
    ends_[peer] = std::move(mine);
  }
  for (size_t peer = 0; peer < size_t(rank); ++peer) {
    if (sockets[peer].valid())
      ends_[peer] = receive_fd(sockets[peer].get(), name_of_rank(peer), deadline);
  }
}

void DescriptorChannels::send(int rank, std::span<const std::byte> message, int fd,
                              Deadline deadline) const {
  send_message(ends_[size_t(rank)].get(), message, fd, name_of_rank(size_t(rank)), deadline);
}

Fd DescriptorChannels::receive(int rank, std::span<std::byte> message, Deadline deadline) const {
  return receive_message(ends_[size_t(rank)].get(), message, name_of_rank(size_t(rank)), deadline);
}

bool DescriptorChannels::is_closed(int rank) const {
  pollfd end{.fd = ends_[size_t(rank)].get(), .events = POLLRDHUP, .revents = 0};
  return ::poll(&end, 1, 0) > 0 && (end.revents & (POLLRDHUP | POLLHUP | POLLERR)) != 0;
}

size_t SharedArena::segment_bytes(int ranks, int mappings) {
  constexpr size_t kLeastHeap = size_t{16} << 20;
  const size_t host = size_t(sysconf(_SC_PHYS_PAGES)) * size_t(sysconf(_SC_PAGESIZE));
  const size_t fixed = control_bytes(size_t(ranks), kPageBytes) + kGroups * sizeof(SharedSlots);
  const auto mapped = size_t(mappings > 0 ? mappings : ranks);
  size_t heap = round_up(2 * host / size_t(std::max(ranks, 2)), kPageBytes);
  const uint64_t most = file_size_limit();
  while ((most > 0 && fixed + heap > most) || !has_address_space(2 * mapped * (fixed + heap))) {
    heap = round_up(heap / 2, kPageBytes);
    if (heap < kLeastHeap) return 0;
  }
  return fixed + heap;
}

void SharedArena::sign(const ShmSegment& mine, int ranks) {
  uint64_t& mark = signature(mine, control_bytes(size_t(ranks), kPageBytes));
  mark = uint64_t(&mark);
  allow_siblings_to_attach();
}

SharedArena::SharedArena(int rank, std::vector<ShmSegment> segments,
                         std::span<const pid_t> processes, bool oversubscribed)
    : rank_(rank),
      segments_(std::move(segments)),
      oversubscribed_(oversubscribed),
      fenced_by_sleepers_(membarrier(MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED)),
      touched_(segments_.size()) {
  for (size_t i = 0; i < segments_.size(); ++i) {
    if (segments_[i].memory().data != nullptr) ranks_.push_back(int(i));
  }
  GXP_ASSERT(ranks_.size() <= kPageBytes / sizeof(uint32_t));
  group_bytes_ = group_bytes(ranks_.size());
  control_bytes_ = control_bytes(ranks_.size(), kPageBytes);
  control_ = segments_[size_t(ranks_.front())].memory().data;
  for (size_t i = 0; i < segments_.size(); ++i) peers_.emplace_back(processes[i], int(i));
  reaches_all_memory_ = std::ranges::all_of(ranks_, [&](int peer) {
    const uint64_t mark = signature(segments_[size_t(peer)], control_bytes_);
    return peer == rank_ || peers_[size_t(peer)].holds(mark, mark);
  });
}

void SharedArena::prefault(int group) const {
  GXP_ASSERT(0 <= group && group < kGroups);
  segments_[size_t(ranks_.front())].prefault(0, kPageBytes + size_t(group + 1) * group_bytes_);
  for (const int rank : ranks_) {
    segments_[size_t(rank)].prefault(control_bytes_ + size_t(group) * sizeof(SharedSlots),
                                     sizeof(SharedSlots));
  }
}

uint64_t SharedArena::heap_offset() const {
  return round_up(control_bytes_ + kGroups * sizeof(SharedSlots), kPageBytes);
}

// First fit; there are few pieces, and they are large.
Memory SharedArena::allocate(size_t bytes) {
  const ShmSegment& mine = segments_[size_t(rank_)];
  const size_t size = round_up(std::max<size_t>(bytes, 1), kPageBytes);
  uint64_t offset = heap_offset();
  for (const auto& [begin, used] : used_) {
    if (begin - offset >= size) break;
    offset = begin + used;
  }
  if (size > mine.memory().bytes - offset) {
    const bool limited = address_space_limit() > 0 || file_size_limit() > 0;
    fail(ErrorKind::kIo, "allocate {} of communicator memory: a rank can have at most {}{}",
         format_bytes(bytes), format_bytes(mine.memory().bytes - heap_offset()),
         limited ? "; raise the limits of address space and file size (ulimit -v, -f), or set "
                   "comm.transport = \"tcp\""
                 : "");
  }
  mine.prefault(offset, size);
  used_.emplace(offset, size);
  return mine.memory().slice(offset, bytes);
}

// The pages go back to the system, and are zero when they come again.
void SharedArena::release(Memory memory) noexcept {
  const ShmSegment& mine = segments_[size_t(rank_)];
  const auto piece = used_.find(uint64_t(memory.data - mine.memory().data));
  if (piece == used_.end()) return;
  static_cast<void>(fallocate(mine.fd(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                              off_t(piece->first), off_t(piece->second)));
  used_.erase(piece);
}

uint64_t SharedArena::offset_of(const std::byte* data, size_t bytes) const {
  const ShmSegment& mine = segments_[size_t(rank_)];
  const size_t size = mine.memory().bytes;
  const auto offset = uintptr_t(data) - uintptr_t(mine.memory().data);
  const bool inside = data != nullptr && offset >= heap_offset() && offset < size;
  return inside && bytes <= size - offset ? offset : 0;
}

std::byte* SharedArena::at(int rank, uint64_t offset, size_t bytes) {
  const ShmSegment& segment = segments_[size_t(rank)];
  const size_t size = segment.memory().bytes;
  if (offset < heap_offset() || offset > size || bytes > size - offset) {
    fail(ErrorKind::kPeer, "map communicator memory of rank {}: it is outside its segment", rank);
  }
  auto& touched = touched_[size_t(rank)];
  const auto known = std::find_if(touched.begin(), touched.end(), [&](const Touched& t) {
    return t.begin <= offset && offset + bytes <= t.end;
  });
  if (known == touched.end() && rank != rank_) {
    segment.prefault(offset, bytes);
    touched.push_back({offset, offset + bytes});
  }
  return segment.memory().data + offset;
}

// A rank that is about to sleep must see what was published, or its publisher must see that it
// sleeps: between the store and the load of either side there is a fence. It costs some 20 ns in
// each publish(), so where the OS can, the rare sleeper fences the processes of all ranks.
void SharedArena::publish(std::atomic<uint64_t>& word, uint64_t value, std::span<const int> peers) {
  word.store(value, std::memory_order_release);
  if (!fenced_by_sleepers_) std::atomic_thread_fence(std::memory_order_seq_cst);
  for (const int peer : peers) {
    if (asleep()[peer].load() != 0 && peer != rank_) waiter_->wake(peer);
  }
}

void SharedArena::sleep(const std::function<bool()>& ready, std::span<const int> peers,
                        Deadline deadline) {
  struct Asleep {
    explicit Asleep(std::atomic<uint32_t>& flag_in) : flag(flag_in) { flag.store(1); }
    ~Asleep() { flag.store(0); }
    std::atomic<uint32_t>& flag;
  } asleep_here(asleep()[rank_]);
  // Fails on versions of Linux on which publishers fence.
  static_cast<void>(membarrier(MEMBARRIER_CMD_GLOBAL_EXPEDITED));
  waiter_->wait_until(ready, peers, deadline);
}

}  // namespace gxp
