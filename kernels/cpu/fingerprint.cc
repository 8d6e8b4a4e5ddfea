#include "kernels/cpu/fingerprint.h"

#include <atomic>
#include <cstring>

#include "kernels/math/fingerprint.h"
#include "lib/base/error.h"

namespace gxp {
namespace {

constexpr size_t kGrain = size_t{1} << 15;  // words that a thread takes at a time

// Of a part's words, which are numbered from `first` on.
template <class Bits>
uint64_t sum_terms(ThreadPool& pool, const ConstTensor& part, uint64_t first) {
  constexpr size_t kEach = 8 / sizeof(Bits);
  const auto* const x = part.data<Bits>();
  const size_t count = part.count();
  const size_t whole = count / kEach;
  std::atomic<uint64_t> sum = 0;
  if (whole < word_count<Bits>(count))
    sum = fingerprint_term(word_of(x, count, whole), first + whole);
  pool.parallel_for(whole, kGrain, [&](size_t begin, size_t end) {
    uint64_t own = 0;
    for (size_t i = begin; i < end; ++i) {
      uint64_t word = 0;
      std::memcpy(&word, x + i * kEach, sizeof word);
      own += fingerprint_term(word, first + i);
    }
    sum += own;
  });
  return sum;
}

uint64_t sum_terms(ThreadPool& pool, const ConstTensor& part, uint64_t first) {
  switch (size_of(part.dtype)) {
    case 1:
      return sum_terms<uint8_t>(pool, part, first);
    case 2:
      return sum_terms<uint16_t>(pool, part, first);
    case 4:
      return sum_terms<uint32_t>(pool, part, first);
    default:
      GXP_ASSERT(size_of(part.dtype) == 8);
      return sum_terms<uint64_t>(pool, part, first);
  }
}

}  // namespace

uint64_t fingerprint_of(ThreadPool& pool, std::span<const ConstTensor> parts) {
  uint64_t sum = 0;
  uint64_t first = 0;
  for (const ConstTensor& part : parts) {
    sum += sum_terms(pool, part, first);
    first += (part.memory.bytes + 7) / 8;
  }
  return sum;
}

}  // namespace gxp
