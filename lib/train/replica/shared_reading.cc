#include "lib/train/replica/shared_reading.h"

#include "lib/collective/communicator.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

namespace gxp {
namespace {

constexpr size_t kRoundBytes = size_t{64} << 20;
constexpr size_t kMaxBlockBytes = size_t{4} << 20;  // a reader's gain ends here
constexpr size_t kMinBlockBytes = size_t{64} << 10;

// Elements of a tensor that lie in a file or a block, one after the other.
struct Slice {
  size_t file = 0;
  size_t tensor = 0;
  Range elements;
  size_t element_bytes = 0;
  size_t offset = 0;  // bytes, in the file or the block
};

struct Block {
  size_t file = 0;
  size_t bytes = 0;
  std::vector<Slice> slices;  // which cover it
};

// Cuts the files that one rank reads into blocks, which are the same on every rank.
class BlockCutter {
 public:
  BlockCutter(const Manifest& manifest, std::span<const int> readers, int reader, size_t ranks)
      : block_bytes_(std::clamp(kRoundBytes / ranks, kMinBlockBytes, kMaxBlockBytes)) {
    for (size_t t = 0; t < manifest.tensors.size(); ++t) {
      const LogicalTensor& tensor = manifest.tensors[t];
      for (const Piece& piece : tensor.pieces) {
        if (readers[piece.file] == reader)
          left_.push_back({piece.file,
                           t,
                           {piece.begin, piece.count},
                           size_of(tensor.info.dtype),
                           piece.file_offset});
      }
    }
    std::ranges::sort(left_, {}, [](const Slice& s) { return std::pair(s.file, s.offset); });
  }

  // Of one file; without slices when all files are at their end.
  Block next() {
    Block block;
    if (next_ < left_.size()) block.file = left_[next_].file;
    while (next_ < left_.size() && left_[next_].file == block.file) {
      Slice& left = left_[next_];
      Slice slice = left;
      const size_t room = (block_bytes_ - block.bytes) / left.element_bytes;
      if (room == 0) break;
      slice.elements.count = std::min(left.elements.count, room);
      slice.offset = block.bytes;
      block.slices.push_back(slice);
      block.bytes += slice.elements.count * slice.element_bytes;
      left.elements.begin += slice.elements.count;
      left.elements.count -= slice.elements.count;
      if (left.elements.count == 0) ++next_;
    }
    return block;
  }

 private:
  size_t block_bytes_;
  std::vector<Slice> left_;  // from next_ on
  size_t next_ = 0;
};

// Which elements of each tensor each rank needs.
class Needs {
 public:
  // [collective]
  Needs(const Checkpoint& checkpoint, Communicator& communicator,
        std::span<const NeededPart> needed)
      : tensors_(checkpoint.manifest().tensors.size()),
        numbers_(2 * tensors_ * size_t(communicator.world_size())) {
    for (const NeededPart& part : needed) {
      int64_t* numbers = &numbers_[place(communicator.rank(), part.tensor)];
      GXP_ASSERT(numbers[1] == 0);
      numbers[0] = int64_t(part.elements.begin);
      numbers[1] = int64_t(part.elements.count);
    }
    communicator.all_gather(memory_of(numbers_), DType::kI64);
  }

  // Of the slice's elements those that `rank` needs.
  [[nodiscard]] Range of(int rank, const Slice& slice) const {
    const int64_t* numbers = &numbers_[place(rank, slice.tensor)];
    return intersection(slice.elements, {size_t(numbers[0]), size_t(numbers[1])});
  }

  // Where in the block they lie: bytes, neighbours as one.
  [[nodiscard]] std::vector<Range> of(int rank, const Block& block) const {
    std::vector<Range> runs;
    for (const Slice& slice : block.slices) {
      const Range elements = of(rank, slice);
      if (elements.count == 0) continue;
      const size_t skipped = elements.begin - slice.elements.begin;
      const Range run{slice.offset + skipped * slice.element_bytes,
                      elements.count * slice.element_bytes};
      if (!runs.empty() && runs.back().end() == run.begin) {
        runs.back().count += run.count;
      } else {
        runs.push_back(run);
      }
    }
    return runs;
  }

 private:
  [[nodiscard]] size_t place(int rank, size_t tensor) const {
    return 2 * (size_t(rank) * tensors_ + tensor);
  }

  size_t tensors_;
  std::vector<int64_t> numbers_;  // by rank and tensor: begin and count
};

class SharedReading {
 public:
  SharedReading(const Checkpoint& checkpoint, Communicator& communicator,
                std::span<const NeededPart> needed, const TakeElements& take,
                std::span<const int> readers)
      : checkpoint_(checkpoint),
        communicator_(communicator),
        needed_(needed),
        take_(take),
        needs_(checkpoint, communicator, needed),
        part_of_(checkpoint.manifest().tensors.size()),
        buffers_(size_t(communicator.world_size())) {
    for (size_t part = 0; part < needed.size(); ++part) part_of_[needed[part].tensor] = part;
    for (int rank = 0; rank < communicator.world_size(); ++rank)
      cutters_.emplace_back(checkpoint.manifest(), readers, rank, buffers_.size());
  }

  void run() {
    std::vector<Block> blocks(buffers_.size());
    for (;;) {
      for (size_t rank = 0; rank < blocks.size(); ++rank) blocks[rank] = cutters_[rank].next();
      if (std::ranges::all_of(blocks, [](const Block& block) { return block.bytes == 0; })) return;
      read(blocks[size_t(communicator_.rank())]);
      exchange(blocks);
      for (size_t rank = 0; rank < blocks.size(); ++rank) take_from(blocks[rank], buffers_[rank]);
    }
  }

 private:
  Memory in_buffer(int rank, const Range& bytes) {
    auto& buffer = buffers_[size_t(rank)];
    if (buffer.size() < bytes.end()) buffer.resize(bytes.end());
    return memory_of(buffer).slice(bytes.begin, bytes.count);
  }

  void read(const Block& block) {
    if (block.bytes == 0) return;
    if (!reader_ || reader_->file() != block.file) reader_.emplace(checkpoint_, block.file);
    reader_->read(in_buffer(communicator_.rank(), {0, block.bytes}));
  }

  // Every rank sends of its own block and receives of the others'.
  void exchange(const std::vector<Block>& blocks) {
    const int rank = communicator_.rank();
    communicator_.begin_group();
    for (int peer = 0; peer < communicator_.world_size(); ++peer) {
      if (peer == rank) continue;
      for (const Range& bytes : needs_.of(peer, blocks[size_t(rank)]))
        communicator_.send(peer, in_buffer(rank, bytes));
      const std::vector<Range> arriving = needs_.of(rank, blocks[size_t(peer)]);
      if (!arriving.empty()) (void)in_buffer(peer, arriving.back());  // does not move from now on
      for (const Range& bytes : arriving) communicator_.recv(peer, in_buffer(peer, bytes));
    }
    communicator_.end_group();
  }

  void take_from(const Block& block, std::vector<std::byte>& buffer) {
    for (const Slice& slice : block.slices) {
      const Range elements = needs_.of(communicator_.rank(), slice);
      if (elements.count == 0) continue;
      const size_t part = part_of_[slice.tensor];
      const size_t skipped = elements.begin - slice.elements.begin;
      const Memory found = memory_of(buffer).slice(slice.offset + skipped * slice.element_bytes,
                                                   elements.count * slice.element_bytes);
      take_(part, elements.begin - needed_[part].elements.begin,
            aligned(found, slice.element_bytes));
    }
  }

  // A tensor may follow one with shorter elements.
  ConstMemory aligned(ConstMemory elements, size_t element_bytes) {
    if (reinterpret_cast<uintptr_t>(elements.data) % element_bytes == 0) return elements;
    aligned_.resize(elements.bytes);
    copy_on_host(memory_of(aligned_), elements);
    return memory_of(std::as_const(aligned_));
  }

  const Checkpoint& checkpoint_;
  Communicator& communicator_;
  std::span<const NeededPart> needed_;
  const TakeElements& take_;
  const Needs needs_;
  std::vector<size_t> part_of_;                  // by tensor that is needed
  std::vector<BlockCutter> cutters_;             // by rank
  std::vector<std::vector<std::byte>> buffers_;  // by rank
  std::vector<std::byte> aligned_;
  std::optional<DataFileReader> reader_;
};

}  // namespace

void read_shared(const Checkpoint& checkpoint, Communicator& communicator,
                 std::span<const NeededPart> needed, const TakeElements& take,
                 std::span<const int> readers) {
  std::vector<int> in_turn;
  for (size_t file = 0; readers.empty() && file < checkpoint.manifest().files.size(); ++file)
    in_turn.push_back(int(file % size_t(communicator.world_size())));
  SharedReading(checkpoint, communicator, needed, take, readers.empty() ? in_turn : readers).run();
}

}  // namespace gxp
