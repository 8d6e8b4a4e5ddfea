// Tensor cores of an emulated GPU: what kernels/cuda/attention/mma.cuh promises, by lanes that show
// each other their fragments. A copy is done as late as it may be, so that a wait that lacks shows.
#pragma once

#include <cmath>
#include <cstring>
#include <vector>

#include "kernels/cuda/attention/mma_fragments.cuh"
#include "kernels/cuda/half.cuh"
#include "tests/cuda/emulation/cuda_runtime.h"

namespace gxp {

struct SharedAddress {
  std::byte* at;
  SharedAddress operator+(int bytes) const { return {at + bytes}; }
};
inline SharedAddress shared_address(void* at) { return {static_cast<std::byte*>(at)}; }

namespace emulation {

template <class T>
float element_of(uint64_t registers, unsigned i) {
  return to_float(T{uint16_t(registers >> 16 * i)});
}

// Registers 2 i and 2 i + 1 as one word.
template <class Fragment>
uint64_t word_of(const Fragment& fragment, unsigned i) {
  uint64_t word = 0;
  std::memcpy(&word, &fragment.at[2 * i], sizeof word);
  return word;
}

struct Copy {
  void* to;
  const void* from;
  size_t bytes;
  bool present;
};
inline std::vector<Copy>& started_copies() {
  static thread_local std::vector<Copy> of_threads[1024];
  return of_threads[threadIdx.x];
}

inline void check_alignment(const void* at, size_t bytes) {
  if (reinterpret_cast<uintptr_t>(at) % bytes != 0) give_up("an address is not aligned");
}

inline FourMatrices load_matrices(SharedAddress row, bool transposed) {
  check_alignment(row.at, 16);
  const auto& rows = show({reinterpret_cast<uintptr_t>(row.at)});
  FourMatrices result{};
  for (unsigned i = 0; i < 4; ++i) {
    uint16_t pair[2];
    for (unsigned e = 0; e < 2; ++e) {
      const unsigned r = transposed ? lane() % 4 * 2 + e : lane() / 4;
      const unsigned c = transposed ? lane() / 4 : lane() % 4 * 2 + e;
      pair[e] = reinterpret_cast<const uint16_t*>(rows[8 * i + r][0])[c];
    }
    std::memcpy(&result.at[i], pair, sizeof pair);
  }
  return result;
}

}  // namespace emulation

template <class T>
void mma_16x8x16(SumFragment& sums, const LeftFragment& left, const RightFragment& right) {
  using namespace emulation;
  const auto& lanes = show({word_of(left, 0), word_of(left, 1), word_of(right, 0)});
  for (unsigned e = 0; e < 4; ++e) {
    const unsigned row = lane() / 4 + e / 2 * 8;
    const unsigned column = lane() % 4 * 2 + e % 2;
    for (unsigned k = 0; k < 16; ++k) {
      const Given& of_left = lanes[row % 8 * 4 + k % 8 / 2];
      const Given& of_right = lanes[column * 4 + k % 8 / 2];
      sums.at[e] += element_of<T>(of_left[k / 8], row / 8 * 2 + k % 2) *
                    element_of<T>(of_right[2], k / 8 * 2 + k % 2);
    }
  }
}

inline FourMatrices load_matrices(SharedAddress row) {
  return emulation::load_matrices(row, false);
}
inline FourMatrices load_transposed_matrices(SharedAddress row) {
  return emulation::load_matrices(row, true);
}

template <int kBytes>
void start_copy(SharedAddress to, const void* from, bool present) {
  emulation::check_alignment(to.at, kBytes);
  emulation::check_alignment(from, kBytes);
  emulation::started_copies().push_back({to.at, from, kBytes, present});
}
inline void finish_copies() {
  for (const emulation::Copy& copy : emulation::started_copies()) {
    if (copy.present)
      std::memcpy(copy.to, copy.from, copy.bytes);
    else
      std::memset(copy.to, 0, copy.bytes);
  }
  emulation::started_copies().clear();
}

inline float fast_exp2(float x) { return std::exp2(x); }

}  // namespace gxp
