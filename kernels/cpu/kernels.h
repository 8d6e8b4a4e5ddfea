// All kernels of the CPU backend but the matrix product (kernels/cpu/gemm/gemm.h), for one
// instruction set: kernels_avx512.cc, kernels_avx2.cc and kernels_baseline.cc compile this.
#pragma once

#include "kernels/cpu/attention.h"
#include "kernels/cpu/classifier.h"
#include "kernels/cpu/convert.h"
#include "kernels/cpu/elementwise.h"
#include "kernels/cpu/float8.h"
#include "kernels/cpu/fold.h"
#include "kernels/cpu/isa.h"
#include "kernels/cpu/quantize.h"
#include "kernels/cpu/rows.h"

namespace gxp {

struct CpuKernels {
  ElementwiseKernels elementwise;
  RowKernels rows;
  ClassifierKernels classifier;
  AttentionKernels attention;
  FoldKernels fold;
  QuantizeKernels quantize;
  ConvertKernels convert;
  Float8Kernels float8;
};

// `isa` is one that this CPU has.
const CpuKernels& cpu_kernels(Isa isa);

namespace avx512 {
extern const CpuKernels kCpuKernels;
}
namespace avx2 {
extern const CpuKernels kCpuKernels;
}
namespace baseline {
extern const CpuKernels kCpuKernels;
}

}  // namespace gxp
