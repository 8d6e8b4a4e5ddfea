// Elements of a storage in a file that a tensor names by strides: views, transposes, expansions.
#pragma once

#include <cstdint>
#include <vector>

#include "lib/ckpt/zip/file_range.h"
#include "lib/device/memory.h"

namespace gxp {

struct StridedView {
  FileRange storage;
  size_t element = 1;  // bytes
  // Element (i_0, i_1, ...) is the storage's element `offset` + sum of i_k * strides[k].
  uint64_t offset = 0;
  std::vector<uint64_t> shape = {};
  std::vector<uint64_t> strides = {};  // as many; 0: all elements along that axis are one
};

// Whether every element lies in the storage, in checked 64-bit arithmetic. A view without elements
// needs none.
bool fits(const StridedView& view);

// The same elements with the fewest axes: without those of size 1, and with neighbours joined that
// are stepped through like one. A view of consecutive elements has one axis or none.
StridedView with_joined_axes(StridedView view);

// Fills `out`, a whole number of elements, with the row-major elements from `begin` on. The view
// fits and has joined axes; the elements exist. Cost: one read if they are consecutive. Otherwise
// they are read in the storage's order and put in their places in `out`, so that a transposed
// matrix is read by runs as long as `out` has rows: a system call for each run, or for each 64 KiB
// of it. Memory: 64 KiB. Errors: as FileRange::read(). Threads: any.
void read_strided(const StridedView& view, uint64_t begin, Memory out);

}  // namespace gxp
