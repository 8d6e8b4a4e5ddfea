#include "lib/transport/arena/shm_segment.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <ctime>
#include <utility>

#include "lib/base/bytes.h"
#include "lib/base/resource_limits.h"

namespace gxp {

namespace {

constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;

int make_memfd() { return memfd_create("gxp", MFD_CLOEXEC | MFD_ALLOW_SEALING); }

[[noreturn]] void fail_to_map(size_t bytes, int error) {
  const uint64_t limit = address_space_limit();
  fail(ErrorKind::kIo, "map shared memory of {}: {}{}", format_bytes(bytes), system_text(error),
       limit == 0 ? std::string()
                  : fmt::format("; address space is limited to {}: raise that (ulimit -v), or set "
                                "comm.transport = \"tcp\"",
                                format_bytes(limit)));
}

size_t page_bytes() { return size_t(sysconf(_SC_PAGESIZE)); }

}  // namespace

Support supports_shared_memory() {
  const Fd probe(make_memfd());
  if (probe.valid()) return {};
  return {false, "memfd_create: " + system_text(errno)};
}

ShmSegment ShmSegment::create(size_t bytes) {
  const size_t rounded = round_up(bytes, page_bytes());
  const std::string act = "make shared memory of " + format_bytes(rounded);
  Fd fd(int(check_sys(make_memfd(), act)));
  check_sys(ftruncate(fd.get(), off_t(rounded)), act);
  check_sys(fcntl(fd.get(), F_ADD_SEALS, kSeals), act);
  return {std::move(fd), rounded};
}

ShmSegment ShmSegment::map(Fd fd, size_t bytes) {
  const size_t rounded = round_up(bytes, page_bytes());
  struct stat status {};
  const int seals = fcntl(fd.get(), F_GET_SEALS);
  if (fstat(fd.get(), &status) != 0 || size_t(status.st_size) != rounded || seals < 0 ||
      (seals & kSeals) != kSeals) {
    fail(ErrorKind::kPeer, "map a peer's shared memory: it is not sealed memory of {}",
         format_bytes(rounded));
  }
  return {std::move(fd), rounded};
}

ShmSegment::ShmSegment(Fd fd, size_t bytes) : fd_(std::move(fd)) {
  void* address = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd_.get(), 0);
  if (address == MAP_FAILED) fail_to_map(bytes, errno);
  memory_ = {static_cast<std::byte*>(address), bytes, MemorySpace::kHost};
}

ShmSegment::ShmSegment(ShmSegment&& other) noexcept
    : fd_(std::move(other.fd_)), memory_(std::exchange(other.memory_, {})) {}

ShmSegment& ShmSegment::operator=(ShmSegment&& other) noexcept {
  std::swap(fd_, other.fd_);
  std::swap(memory_, other.memory_);
  return *this;
}

ShmSegment::~ShmSegment() {
  if (memory_.data != nullptr) munmap(memory_.data, memory_.bytes);
}

void ShmSegment::prefault(size_t offset, size_t bytes) const {
  const size_t page = page_bytes();
  const size_t begin = offset / page * page;
  const size_t end = std::min(round_up(offset + bytes, page), memory_.bytes);
#ifdef MADV_POPULATE_WRITE
  if (madvise(memory_.data + begin, end - begin, MADV_POPULATE_WRITE) == 0) return;
  // EINVAL: Linux before 5.14.
  if (errno != EINVAL) check_sys(-1, "fill shared memory of " + format_bytes(end - begin));
#endif
  // An addition of zero changes nothing that a peer has written in the meantime.
  for (size_t at = begin; at < end; at += page) {
    std::atomic_ref(*reinterpret_cast<uint32_t*>(memory_.data + at)).fetch_add(0);
  }
}

bool ShmDoorbell::sleep(uint32_t prepared, Deadline deadline) {
  const auto left = std::chrono::duration_cast<std::chrono::nanoseconds>(deadline.remaining());
  const timespec timeout{left.count() / 1'000'000'000, left.count() % 1'000'000'000};
  const long result = syscall(SYS_futex, &rings, FUTEX_WAIT, prepared, &timeout, nullptr, 0);
  return result == 0 || errno != ETIMEDOUT;
}

// If there is no room the sleeper has bells enough.
void ShmDoorbell::send_bell(int socket) {
  const std::byte bell{1};
  (void)::send(socket, &bell, sizeof bell, MSG_DONTWAIT | MSG_NOSIGNAL);
}

void ShmDoorbell::ring_always() {
  rings.fetch_add(1);
  syscall(SYS_futex, &rings, FUTEX_WAKE, 1, nullptr, nullptr, 0);
}

}  // namespace gxp
