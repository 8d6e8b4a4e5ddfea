#include "kernels/cpu/gemm/amx.h"

#include <fmt/format.h>

#include <cerrno>
#include <vector>

#include "kernels/cpu/isa.h"
#include "kernels/cpu/scratch.h"

#if defined(__x86_64__) && defined(__linux__)
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace gxp {
namespace {

// Small integers, whose products and sums are exact: the order of additions, in which a CPU may
// differ from the manual, does not matter.
std::vector<BFloat16> small_integers(size_t count, unsigned seed) {
  std::vector<BFloat16> halves(count);
  for (size_t i = 0; i < count; ++i) {
    seed = seed * 1664525u + 1013904223u;
    const float value = float(seed >> 28) - 8;
    halves[i] = BFloat16(value);
  }
  return halves;
}

std::vector<float> multiply_with(const GemmKernel& kernel) {
  // Every tile in use, whole and in part.
  GemmArgs args;
  args.m = 45, args.n = 61, args.k = 99;
  const std::vector<BFloat16> a = small_integers(args.m * args.k, 1);
  const std::vector<BFloat16> b = small_integers(args.k * args.n, 2);
  std::vector<float> c(args.m * args.n);
  args.a = a.data(), args.lda = args.k, args.a_type = DType::kBF16;
  args.b = b.data(), args.ldb = args.n, args.b_type = DType::kBF16;
  args.c = c.data(), args.ldc = args.n;
  Scratch scratch;
  kernel.compute(args, {0, args.m, 0, args.n}, scratch.take(kernel.scratch_floats));
  return c;
}

}  // namespace

Support compare_with_emulation(const GemmKernel& kernel) {
  const std::vector<float> expected = multiply_with(amx_emulated::kGemmKernel);
  const std::vector<float> products = multiply_with(kernel);
  for (size_t i = 0; i < expected.size(); ++i) {
    if (products[i] == expected[i]) continue;
    return {false, fmt::format("{} is wrong on this CPU: element {} of a product is {}, not {}",
                               kernel.name, i, products[i], expected[i])};
  }
  return {};
}

#if defined(__x86_64__) && defined(__linux__)
namespace {

// Intel 64 and IA-32 Architectures Software Developer's Manual: volume 1, 13.3 (state components);
// volume 2, CPUID leaf 7. Linux: Documentation/arch/x86/xstate.rst.
constexpr unsigned kOsxsave = 1u << 27;  // leaf 1, ECX
constexpr unsigned kAmxBf16 = 1u << 22;  // leaf 7, EDX
constexpr unsigned kAmxTile = 1u << 24;
constexpr unsigned kXtileCfg = 1u << 17, kXtileData = 1u << 18;
constexpr long kArchRequestPermission = 0x1023, kXtileDataFeature = 18;

bool cpu_has_amx() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  if (__get_cpuid(1, &a, &b, &c, &d) == 0 || (c & kOsxsave) == 0) return false;
  if (__get_cpuid_count(7, 0, &a, &b, &c, &d) == 0) return false;
  return (d & kAmxBf16) != 0 && (d & kAmxTile) != 0;
}

// Does the system save tile registers when threads change?
bool system_saves_tiles() {
  unsigned low = 0, high = 0;
  asm volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return (low & kXtileCfg) != 0 && (low & kXtileData) != 0;
}

Support probe_amx() {
  if (!cpu_has_amx()) return {false, ""};
  if (!cpu_has(Isa::kAvx512) || __builtin_cpu_supports("avx512bf16") == 0)
    return {false, "AMX without AVX-512 and AVX512-BF16"};
  if (!system_saves_tiles()) return {false, "AMX is not enabled by the OS (XCR0)"};
  if (::syscall(SYS_arch_prctl, kArchRequestPermission, kXtileDataFeature) != 0)
    return {false, fmt::format("AMX is refused by the OS: {}", system_text(errno))};
  return compare_with_emulation(amx::kGemmKernel);
}

}  // namespace

Support amx_support() {
  static const Support support = probe_amx();
  return support;
}
#else
Support amx_support() { return {false, ""}; }
#endif

}  // namespace gxp
