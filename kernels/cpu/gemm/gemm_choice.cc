#include "kernels/cpu/gemm/gemm_choice.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "kernels/cpu/gemm/amx.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace gxp {
namespace {

const GemmKernel& kernel_of(Isa isa) {
  switch (isa) {
#if defined(__x86_64__)
    case Isa::kAvx512:
      return avx512::kGemmKernel;
    case Isa::kAvx2:
      return avx2::kGemmKernel;
#endif
    default:
      return baseline::kGemmKernel;
  }
}

#if defined(__x86_64__)
struct CpuFamily {
  std::string_view vendor;
  unsigned family;
  bool operator==(const CpuFamily&) const = default;
};

// Where VDPBF16PS, which multiplies twice as many, is issued as often as an f32 FMA. Not in the
// table: Intel's Xeons, which issue it every other cycle (docs/RESULTS.md).
constexpr std::array kFastPairs = {
    CpuFamily{"AuthenticAMD", 0x19},  // Zen 4 (Zen 3 lacks the instruction): measured, 2.0 times
    CpuFamily{"AuthenticAMD", 0x1a},  // Zen 5: not measured; at worst as fast as FMA
};

// CPUID leaf 1: the extended family is added where the family is 15.
bool pairs_are_fast() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  std::array<char, 12> vendor{};
  __cpuid(0, a, b, c, d);
  std::memcpy(vendor.data(), &b, 4);
  std::memcpy(vendor.data() + 4, &d, 4);
  std::memcpy(vendor.data() + 8, &c, 4);
  __cpuid(1, a, b, c, d);
  const unsigned family = (a >> 8 & 0xf) == 0xf ? 0xf + (a >> 20 & 0xff) : a >> 8 & 0xf;
  const CpuFamily here = {{vendor.data(), vendor.size()}, family};
  return std::find(kFastPairs.begin(), kFastPairs.end(), here) != kFastPairs.end();
}

Support avx512_bf16_support() {
  return {cpu_has(Isa::kAvx512) && __builtin_cpu_supports("avx512bf16") != 0, ""};
}
bool always() { return true; }
#endif
Support any_cpu() { return {}; }
bool never() { return false; }

// Kernels that multiply bf16 pairs, best first.
struct PairKernel {
  const GemmKernel* kernel;
  Support (*support)();
  bool (*is_preferred)();
};
constexpr PairKernel kPairKernels[] = {
#if defined(__x86_64__)
    {&amx::kGemmKernel, amx_support, always},
    {&avx512_bf16::kGemmKernel, avx512_bf16_support, pairs_are_fast},
#endif
    {&amx_emulated::kGemmKernel, any_cpu, never},
};

GemmKernels choose_by_name(Isa isa, const std::string& name) {
  const GemmKernel& own = kernel_of(isa);
  if (name == own.name) return {&own, &own, std::string(own.name)};
  for (const PairKernel& row : kPairKernels) {
    if (name != row.kernel->name) continue;
    const Support support = row.support();
    if (support) return {&own, row.kernel, fmt::format("{} (bf16: {})", own.name, name)};
    fail(ErrorKind::kUnavailable, "choose {} for bf16 products: {}", name,
         support.reason.empty() ? "this CPU lacks it" : support.reason);
  }
  fail(ErrorKind::kUnavailable,
       "choose {} for bf16 products: unknown; use amx, avx512-bf16, amx-emulated or {}", name,
       own.name);
}

}  // namespace

GemmKernels choose_gemm_kernels(Isa isa, const std::string& bf16) {
  if (!bf16.empty()) return choose_by_name(isa, bf16);
  const GemmKernel& own = kernel_of(isa);
  GemmKernels chosen = {&own, &own, std::string(own.name)};
  if (isa != Isa::kAvx512) return chosen;
  std::string refused;
  for (const PairKernel& row : kPairKernels) {
    if (!row.is_preferred()) continue;
    const Support support = row.support();
    if (support) {
      chosen.bf16 = row.kernel;
      break;
    }
    if (!support.reason.empty()) refused = "; " + support.reason;
  }
  if (chosen.bf16 != &own || !refused.empty())
    chosen.description = fmt::format("{} (bf16: {}{})", own.name, chosen.bf16->name, refused);
  return chosen;
}

}  // namespace gxp
