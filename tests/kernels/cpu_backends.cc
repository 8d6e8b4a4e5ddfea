// The CPU's backends: every instruction set that this one has, with 1, 2 and 3 threads.
#include "tests/kernels/backends.h"

namespace gxp {

BackendKind cpu_kind(Isa isa, int threads) {
  const std::string name(to_string(isa));
  return {fmt::format("{}, {} thread(s)", name, threads), threads, [name, threads] {
            const auto pool = std::make_shared<ThreadPool>(threads);
            return TestOps{{pool, nullptr}, make_cpu_ops(*pool, name)};
          }};
}

std::vector<BackendKind> backend_kinds() {
  std::vector<BackendKind> kinds;
  for (const Isa isa : isas_here()) {
    for (const int threads : {1, 2, 3}) kinds.push_back(cpu_kind(isa, threads));
  }
  return kinds;
}

std::vector<BackendKind> attention_kinds() { return backend_kinds(); }

}  // namespace gxp
