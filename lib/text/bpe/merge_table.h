// Which two neighbouring tokens become which one.
#pragma once

#include <bit>
#include <cstdint>
#include <vector>

#include "lib/base/hash.h"

namespace gxp {

struct MergeResult {
  static constexpr uint32_t kNever = UINT32_MAX;
  uint32_t rank = kNever;  // lower ones first
  int32_t id = 0;
};

// A hash table with open addressing, at most half full: a look-up is one or two cache lines.
class MergeTable {
 public:
  // Of at most `count` pairs.
  explicit MergeTable(size_t count) : slots_(std::bit_ceil(2 * count + 2)) {}
  // What stands there for the pair already is replaced.
  void set(int32_t left, int32_t right, MergeResult made) {
    Slot& slot = slots_[place_of(key_of(left, right))];
    slot = {key_of(left, right), made};
  }
  // Of rank kNever if they stay apart.
  [[nodiscard]] MergeResult find(int32_t left, int32_t right) const {
    return slots_[place_of(key_of(left, right))].made;
  }

 private:
  struct Slot {
    uint64_t key = kEmpty;
    MergeResult made;
  };
  static constexpr uint64_t kEmpty = UINT64_MAX;  // ids are not negative
  static uint64_t key_of(int32_t left, int32_t right) {
    return uint64_t(uint32_t(left)) << 32 | uint32_t(right);
  }
  [[nodiscard]] size_t place_of(uint64_t key) const {
    size_t at = mix64(key) & (slots_.size() - 1);
    while (slots_[at].key != key && slots_[at].key != kEmpty) at = (at + 1) & (slots_.size() - 1);
    return at;
  }

  std::vector<Slot> slots_;
};

}  // namespace gxp
