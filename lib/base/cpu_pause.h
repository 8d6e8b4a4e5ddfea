// The instruction of a loop that spins on memory: it leaves the core to its other thread, and saves
// power. A pause takes 10 to 45 ns, by the CPU.
#pragma once

namespace gxp {

inline void pause_cpu_once() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("isb");  // "yield" does nothing on most cores
#endif
}

}  // namespace gxp
