#include "kernels/mixed_sums.h"

#include <algorithm>
#include <cstring>

#include "kernels/cpu/float_pieces.h"
#include "kernels/cpu/kernels.h"

namespace gxp {
namespace {

constexpr size_t kPiece = 1024;  // elements: two buffers of floats in L1

const ConvertKernels& widest() {
  static const ConvertKernels& kernels = cpu_kernels(choose_isa()).convert;
  return kernels;
}

// body(begin, count) for all pieces of `count` elements.
template <class Body>
void by_pieces(size_t count, const Body& body) {
  for (size_t at = 0; at < count; at += kPiece) body(at, std::min(kPiece, count - at));
}

}  // namespace

void copy_rounded(const Tensor& to, const ConstTensor& from) {
  GXP_ASSERT(to.count() == from.count());
  if (to.count() == 0) return;
  if (to.dtype == from.dtype) {
    std::memcpy(to.memory.data, from.memory.data, to.memory.bytes);
    return;
  }
  const InPieces in(widest(), from);
  const OutPieces out(widest(), to);
  alignas(64) float buffer[kPiece];
  by_pieces(to.count(), [&](size_t at, size_t count) {
    // One of the two is f32's own memory, or the buffer serves both.
    float* const place = out.place(at, buffer);
    const float* const values = in.read(at, count, place);
    out.finish(at, count, values);
  });
}

void add_rounded(const Tensor& to, const ConstTensor& from) {
  GXP_ASSERT(to.count() == from.count());
  const InPieces in(widest(), from);
  const InPieces before(widest(), to);
  const OutPieces out(widest(), to);
  alignas(64) float buffers[2][kPiece];
  by_pieces(to.count(), [&](size_t at, size_t count) {
    const float* const more = in.read(at, count, buffers[0]);
    const float* const values = before.read(at, count, buffers[1]);
    float* const sums = out.place(at, buffers[1]);
    for (size_t i = 0; i < count; ++i) sums[i] = values[i] + more[i];
    out.finish(at, count, sums);
  });
}

}  // namespace gxp
