// Copies from and to the memory of another process of this host by system calls: one pass over the
// bytes, where a copy through shared memory takes two. It can be refused: by seccomp, between
// users, or where neither process descends from the other's parent (Yama's ptrace_scope 1); so try
// it first.
// Source: process_vm_readv(2).
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>

#include "lib/device/memory.h"

namespace gxp {

// Permits the processes started by this process's parent, and their children, to access its memory,
// if permission is needed.
void allow_siblings_to_attach() noexcept;

class CrossMemoryAttach {
 public:
  CrossMemoryAttach() = default;  // of no process
  // `rank` is for errors.
  CrossMemoryAttach(pid_t process, int rank) : process_(process), rank_(rank) {}

  // Whether the 8 bytes at `address` of the process can be read and are `expected`.
  [[nodiscard]] bool holds(uint64_t address, uint64_t expected) const noexcept;
  // Fills all of `into`; writes all of `from`. kPeer: the process is gone, or has no such memory.
  // Cost: half a microsecond a call, 0.1 us for each page.
  void read(uint64_t address, Memory into) const;
  void write(uint64_t address, ConstMemory from) const;

 private:
  pid_t process_ = 0;
  int rank_ = 0;
};

}  // namespace gxp
