// The emulation of AMX against the manual, and AMX against the emulation.
#include "kernels/cpu/gemm/amx.h"

#include <vector>

#include "kernels/cpu/gemm/gemm_kernel.h"
#include "kernels/cpu/scratch.h"
#include "tests/catch.h"
#include "tests/kernels/backends.h"
#include "tests/kernels/halves.h"

namespace gxp {
namespace {

// The sum of a[i] b[i] in bf16, by the emulation.
float emulated_dot(const Floats& a, const Floats& b) {
  const HalfArray left(a, DType::kBF16), right(b, DType::kBF16);
  float c = -1;
  GemmArgs args;
  args.m = args.n = 1, args.k = a.size();
  args.a = left.data(), args.lda = a.size(), args.a_type = DType::kBF16;
  args.b = right.data(), args.ldb = 1, args.b_type = DType::kBF16;
  args.c = &c, args.ldc = 1;
  // Not by Gemm, which makes products of few rows by vectors.
  const GemmKernel& kernel = amx_emulated::kGemmKernel;
  Scratch scratch;
  kernel.compute(args, {0, 1, 0, 1}, scratch.take(kernel.scratch_floats));
  return c;
}

TEST_CASE("emulated tiles add first and second terms of pairs apart, then both", "[gemm]") {
  const float large = 0x1p24f;  // plus 1 is rounded to itself, plus 2 is not
  CHECK(emulated_dot({large, 1, 1, 1}, {1, 1, 1, 1}) == large + 2);
  CHECK(emulated_dot({large, 1, 1, 0}, {1, 1, 1, 1}) == large);
  CHECK(emulated_dot({1, large, 1, 1}, {1, 1, 1, 1}) == large + 2);
  // Exact before it is added: 129 * 129 has 15 bits, of which a bf16 has 8.
  CHECK(emulated_dot({129, 1}, {129, -16384}) == 129 * 129 - 16384);
}

TEST_CASE("emulated tiles take denormals for zero", "[gemm]") {
  const float least = 0x1p-126f;
  CHECK(emulated_dot({least}, {1}) == least);
  CHECK(emulated_dot({least / 2}, {0x1p100f}) == 0);
  CHECK(emulated_dot({least}, {0.5f}) == 0);
  CHECK(emulated_dot({least * 1.5f, 0, least, 0}, {1, 0, -1, 0}) == 0);
}

// The emulation, but that one element is off by one.
void compute_wrongly(const GemmArgs& args, const GemmPart& part, float* scratch) {
  amx_emulated::kGemmKernel.compute(args, part, scratch);
  static_cast<float*>(args.c)[args.m * args.n - 1] += 1;
}

TEST_CASE("a kernel whose products are not the emulation's is refused", "[gemm]") {
  GemmKernel wrong = amx_emulated::kGemmKernel;
  CHECK(compare_with_emulation(wrong).ok);
  wrong.compute = compute_wrongly;
  const Support support = compare_with_emulation(wrong);
  CHECK_FALSE(support.ok);
  CHECK(support.reason.find("amx-emulated is wrong on this CPU: element 2744") == 0);
}

TEST_CASE("a product kernel that is unknown or not to be had is an error", "[gemm]") {
  CHECK_THROWS_WITH(choose_gemm_kernels(Isa::kBaseline, "avx1024"),
                    "choose avx1024 for bf16 products: unknown; use amx, avx512-bf16, "
                    "amx-emulated or baseline");
  if (!amx_support()) CHECK_THROWS_AS(choose_gemm_kernels(choose_isa(), "amx"), Error);
  CHECK(choose_gemm_kernels(Isa::kBaseline).description == "baseline");
}

}  // namespace
}  // namespace gxp
