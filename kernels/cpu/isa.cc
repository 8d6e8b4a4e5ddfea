#include "kernels/cpu/isa.h"

#include <array>

#include "lib/base/error.h"

namespace gxp {
namespace {

constexpr std::array<Isa, 3> kBestFirst = {Isa::kAvx512, Isa::kAvx2, Isa::kBaseline};

}  // namespace

std::string_view to_string(Isa isa) {
  switch (isa) {
    case Isa::kBaseline:
      return "baseline";
    case Isa::kAvx2:
      return "avx2";
    case Isa::kAvx512:
      return "avx512";
  }
  return "";
}

bool cpu_has(Isa isa) {
  if (isa == Isa::kBaseline) return true;
#if defined(__x86_64__)
  // Every CPU with AVX2 has F16C, which not every compiler can ask for.
  const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  if (isa == Isa::kAvx2) return avx2;
  return avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
#else
  return false;
#endif
}

Isa choose_isa(const std::string& name) {
  for (const Isa isa : kBestFirst) {
    if (!name.empty() && name != to_string(isa)) continue;
    if (cpu_has(isa)) return isa;
    if (!name.empty())
      fail(ErrorKind::kUnavailable, "choose instruction set {}: this CPU lacks it", name);
  }
  fail(ErrorKind::kUnavailable, "choose instruction set {}: unknown; use avx512, avx2 or baseline",
       name);
}

}  // namespace gxp
