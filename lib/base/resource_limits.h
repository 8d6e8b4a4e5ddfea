// The limits that a shell or a batch system sets for a process (ulimit), as far as they affect gxp.
#pragma once

#include <cstdint>

namespace gxp {

// Bytes; 0: there is no limit.
uint64_t address_space_limit();  // ulimit -v
uint64_t file_size_limit();      // ulimit -f; it holds for shared memory, too
// For this user, threads included; 0: there is no limit.
uint64_t process_limit();  // ulimit -u

}  // namespace gxp
