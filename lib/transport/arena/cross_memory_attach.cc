#include "lib/transport/arena/cross_memory_attach.h"

#include <sys/prctl.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>

#include "lib/base/error.h"

namespace gxp {
namespace {

using VmCall = ssize_t (*)(pid_t, const iovec*, unsigned long, const iovec*, unsigned long,
                           unsigned long);

void* place(uint64_t address) {
  return reinterpret_cast<void*>(address);  // of another process
}

// One call moves 2 GiB at most.
void move_all(VmCall call, const char* verb, pid_t process, int rank, uint64_t address,
              std::byte* data, size_t bytes) {
  for (size_t moved = 0; moved < bytes;) {
    const iovec mine{data + moved, bytes - moved};
    const iovec theirs{place(address + moved), mine.iov_len};
    const ssize_t count = call(process, &mine, 1, &theirs, 1, 0);
    if (count <= 0) {
      fail(ErrorKind::kPeer, "{} {} bytes of rank {}'s memory: {}", verb, bytes, rank,
           count == 0 ? "it ends there" : system_text(errno));
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
  move_all(process_vm_readv, "read", process_, rank_, address, into.data, into.bytes);
}

void CrossMemoryAttach::write(uint64_t address, ConstMemory from) const {
  move_all(process_vm_writev, "write", process_, rank_, address, const_cast<std::byte*>(from.data),
           from.bytes);
}

}  // namespace gxp
