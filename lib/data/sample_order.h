// Which sample is at each position of the endless sequence that a run reads.
//
// Positions count samples over all ranks, so order, resume and world size are independent: a run
// that has read p samples goes on at position p, whatever its world size. Every epoch (sample_count
// positions) holds each sample exactly once.
//   sequential  position modulo count
//   shuffled    a permutation of each epoch, keyed by (seed, epoch)
// The permutation is a balanced Feistel network with cycle walking: O(1) memory, O(1) expected
// time. Source: Black & Rogaway, "Ciphers with arbitrary finite domains", CT-RSA 2002. Its values
// are part of the contract: a resumed run must find the same order under a later version of gxp.
#pragma once

#include <cstdint>

#include "lib/config/data_config.h"

namespace gxp {

class SampleOrder {
 public:
  // `sample_count` > 0.
  SampleOrder(RowOrder order, uint64_t seed, uint64_t sample_count);
  [[nodiscard]] uint64_t at(uint64_t position) const;

 private:
  [[nodiscard]] uint64_t permute(uint64_t value, uint64_t key) const;

  bool shuffled_;
  uint64_t seed_;
  uint64_t sample_count_;
  int half_bits_ = 1;  // the network's domain is 4^half_bits_: count or more, below 4 * count
};

}  // namespace gxp
