// The arrays of an element-wise operation as pieces of floats (float_pieces.h).
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>

#include "kernels/cpu/float_pieces.h"
#include "kernels/elementwise.h"

namespace gxp {

// Elements that one thread takes at once: whole cache lines, so that no two threads share one.
constexpr size_t kPieceElements = 1024;

// Where pieces of the arrays of an element-wise operation are floats: in L1.
using PieceBuffers = float[4][kPieceElements];

// `kernels` outlives it. Threads: any, each with buffers of its own.
class ElementPieces {
 public:
  ElementPieces(const ElementwiseCall& call, const ConvertKernels& kernels)
      : form_(form_of(call.math)) {
    for (size_t i = 0; i < form_.written; ++i) {
      out_[i] = OutPieces(kernels, call.written[i]);
      in_[i] = InPieces(kernels, call.written[i]);
    }
    for (size_t i = form_.written; i < form_.arrays; ++i)
      in_[i] = InPieces(kernels, call.read[i - form_.written]);
  }
  [[nodiscard]] bool need_buffers() const {
    return std::ranges::any_of(in_, [](const InPieces& in) { return in.needs_buffer(); });
  }
  // Elements [begin, begin + count) of each array: those that are read, and places for the others.
  std::array<float*, 4> read(size_t begin, size_t count, PieceBuffers& buffers) const {
    std::array<float*, 4> places{};
    for (size_t i = 0; i < form_.arrays; ++i) {
      const bool is_written = i < form_.written;
      if (is_written) places[i] = out_[i].place(begin, buffers[i]);
      if (i < form_.first_read) continue;
      const float* const values = in_[i].read(begin, count, buffers[i]);
      if (!is_written) places[i] = const_cast<float*>(values);  // the kernel only reads them
    }
    return places;
  }
  void finish(size_t begin, size_t count, const PieceBuffers& buffers) const {
    for (size_t i = 0; i < form_.written; ++i) out_[i].finish(begin, count, buffers[i]);
  }

 private:
  ElementwiseForm form_;
  std::array<OutPieces, 4> out_;
  std::array<InPieces, 4> in_;
};

}  // namespace gxp
