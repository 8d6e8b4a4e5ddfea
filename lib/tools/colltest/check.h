// Fills inputs with pattern.h's values and holds outputs against what must come out of them.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "lib/device/memory.h"
#include "lib/tools/colltest/cases.h"
#include "lib/tools/colltest/pattern.h"

namespace gxp {

// Wrong elements in one rank's output. Trivially copyable, since ranks gather it as bytes.
struct WrongElements {
  uint64_t count = 0;
  uint64_t first = 0;               // of the rank's output
  std::array<std::byte, 8> want{};  // the element there
  std::array<std::byte, 8> got{};
};

// One rank's data of one case. Pure but for the memory it is given.
// Cost: 16381 elements times the ranks once, then a copy or a comparison of the memory.
class ExpectedData {
 public:
  ExpectedData(const BenchCase& bench, int rank, int world_size);

  // The pattern, for the elements of the logical buffer that this rank's input holds.
  void fill_input(Memory input) const;
  // All elements of this rank's output, in order.
  [[nodiscard]] WrongElements compare(ConstMemory output) const;

 private:
  // Output elements `into` are elements from `from` on of some rank's input, or of the reduction.
  struct Piece {
    Range into;
    size_t from = 0;
    std::vector<std::byte> period;
  };
  void add_piece(Range into, int source, size_t from);
  void compare_piece(const Piece& piece, ConstMemory output, WrongElements& wrong) const;

  BenchCase bench_;
  Pattern pattern_;
  Extents extents_;
  std::vector<std::byte> own_;  // a period of this rank's input
  std::vector<Piece> pieces_;
};

}  // namespace gxp
