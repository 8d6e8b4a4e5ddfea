// Reading a checkpoint by all ranks together, each byte of it once.
//
// Data file i is read by rank i % world_size, or by readers[i], from its beginning to its end, and hashed.
// In each round every rank reads one block of its files and sends to each other rank the elements
// in it that this one needs. With the world size and the strategy of the writer, each rank finds
// its elements in its own file: then no data are sent, or, if every rank needs all elements, as
// much as in an all-gather.
#pragma once

#include <functional>
#include <span>

#include "lib/base/range.h"
#include "lib/ckpt/native/checkpoint.h"

namespace gxp {

class Communicator;

// Elements of a tensor that a rank needs.
struct NeededPart {
  size_t tensor = 0;  // in the manifest's tensors
  Range elements;
};

// Takes elements of a needed part, `first` being counted from the part's first one.
using TakeElements = std::function<void(size_t part, size_t first, ConstMemory elements)>;

// [collective] All ranks have opened the same checkpoint. Calls `take` until it has received each
// element of `needed`, which names each tensor at most once; in any order, with memory that is
// aligned for the element and valid during the call. The elements may be used only after this
// function has returned and a barrier has followed, since hashes are checked last. Errors:
// kCorrupt, kIo on the rank that reads the file; kPeer on the others.
// Cost: one reading of the checkpoint over all ranks; buffers of 64 MiB for all blocks of a round,
// of 4 MiB at most for each, where the rank needs something of them; 16 bytes for each tensor and
// rank.
void read_shared(const Checkpoint& checkpoint, Communicator& communicator,
                 std::span<const NeededPart> needed, const TakeElements& take,
                 std::span<const int> readers = {});

}  // namespace gxp
