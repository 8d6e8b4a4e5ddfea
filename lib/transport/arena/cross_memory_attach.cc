#include "lib/transport/arena/cross_memory_attach.h"

#include <sys/prctl.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>
#include <string_view>

#include "lib/base/error.h"

namespace gxp {
namespace {

void* place(uint64_t address) {
  return reinterpret_cast<void*>(address);  // of another process
}

struct Direction {
  std::string_view verb;
  ssize_t (*call)(pid_t, const iovec* mine, unsigned long, const iovec* theirs, unsigned long,
                  unsigned long);
};
constexpr Direction kRead{"read", process_vm_readv};
constexpr Direction kWrite{"write", process_vm_writev};

// Between `mine` and the address of the rank's process. One call moves 2 GiB at most.
void move_all(const Direction& direction, pid_t process, int rank, uint64_t address, Memory mine) {
  for (size_t moved = 0; moved < mine.bytes;) {
    const iovec here{mine.data + moved, mine.bytes - moved};
    const iovec there{place(address + moved), here.iov_len};
    const ssize_t count = direction.call(process, &here, 1, &there, 1, 0);
    if (count <= 0) {
      fail(ErrorKind::kPeer, "{} {} bytes of rank {}'s memory: {}", direction.verb, mine.bytes,
           rank, count == 0 ? "it ends there" : system_text(errno));
    }
    moved += size_t(count);
  }
}

}  // namespace

// EINVAL: the OS asks for none.
void allow_siblings_to_attach() noexcept {
  static_cast<void>(prctl(PR_SET_PTRACER, static_cast<unsigned long>(getppid()), 0, 0, 0));
}

bool CrossMemoryAttach::holds(uint64_t address, uint64_t expected) const noexcept {
  uint64_t found = 0;
  const iovec mine{&found, sizeof found};
  const iovec theirs{place(address), sizeof found};
  return process_ > 0 && process_vm_readv(process_, &mine, 1, &theirs, 1, 0) == sizeof found &&
         found == expected;
}

void CrossMemoryAttach::read(uint64_t address, Memory into) const {
  move_all(kRead, process_, rank_, address, into);
}

void CrossMemoryAttach::write(uint64_t address, ConstMemory from) const {
  move_all(kWrite, process_, rank_, address, {const_cast<std::byte*>(from.data), from.bytes});
}

}  // namespace gxp
