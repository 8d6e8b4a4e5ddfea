#include "lib/tools/colltest/check.h"

#include <algorithm>
#include <cstring>

namespace gxp {
namespace {

constexpr int kReduction = -1;  // in place of a source rank

// The value of a reduction depends on it; what is only moved is as good for any.
Pattern pattern_of(const BenchCase& bench, int world_size) {
  const ReduceOp op = reduces(*bench.operation) ? bench.redop : ReduceOp::kMax;
  return {.dtype = bench.dtype,
          .op = op,
          .world_size = world_size,
          .codec_error = bench.codec == nullptr ? 0 : bench.codec->error};
}

}  // namespace

ExpectedData::ExpectedData(const BenchCase& bench, int rank, int world_size)
    : bench_(bench),
      pattern_(pattern_of(bench, world_size)),
      extents_(extents_of(*bench.operation, call_of(bench, rank), rank, world_size)),
      own_(pattern_input(pattern_, rank, bench.count)) {
  const Range output = extents_.output;
  const auto& collective = bench.operation->collective;
  if (output.count == 0) return;
  if (!collective) {
    add_piece(output, (rank + world_size - 1) % world_size, 0);
  } else if (reduces(*collective)) {
    add_piece(output, kReduction, output.begin);
  } else if (has_root(*collective) && collective != Collective::kGather) {
    add_piece(output, bench.root, output.begin);
  } else {  // a chunk of each rank, of an all-to-all the one for this rank
    const Chunks chunks(bench.count, world_size);
    for (int source = 0; source < world_size; ++source) {
      const int from = collective == Collective::kAllToAll ? rank : source;
      add_piece(chunks[source], source, chunks[from].begin);
    }
  }
}

void ExpectedData::add_piece(Range into, int source, size_t from) {
  if (into.count == 0) return;
  pieces_.push_back({{into.begin - extents_.output.begin, into.count},
                     from,
                     source == kReduction ? pattern_reduced(pattern_, bench_.count)
                                          : pattern_input(pattern_, source, bench_.count)});
}

void ExpectedData::fill_input(Memory input) const {
  const size_t element = size_of(bench_.dtype);
  size_t i = extents_.input.begin;
  for (size_t at = 0; at < input.bytes;) {
    const size_t start = i % kPeriod * element;
    const size_t run = std::min(own_.size() - start, input.bytes - at);
    std::memcpy(input.data + at, own_.data() + start, run);
    at += run;
    i += run / element;
  }
}

WrongElements ExpectedData::compare(ConstMemory output) const {
  WrongElements wrong;
  for (const Piece& piece : pieces_) compare_piece(piece, output, wrong);
  return wrong;
}

void ExpectedData::compare_piece(const Piece& piece, ConstMemory output,
                                 WrongElements& wrong) const {
  const size_t element = size_of(bench_.dtype);
  const auto compare_one = [&](size_t index, const std::byte* want) {
    const std::byte* got = output.data + index * element;
    if (same_element(pattern_, got, want)) return;
    if (wrong.count++ > 0) return;
    wrong.first = index;
    std::memcpy(wrong.want.data(), want, element);
    std::memcpy(wrong.got.data(), got, element);
  };
  for (size_t done = 0; done < piece.into.count;) {
    const size_t start = (piece.from + done) % kPeriod;
    const size_t run = std::min(piece.period.size() / element - start, piece.into.count - done);
    const std::byte* want = piece.period.data() + start * element;
    const size_t index = piece.into.begin + done;
    if (std::memcmp(output.data + index * element, want, run * element) != 0) {
      for (size_t i = 0; i < run; ++i) compare_one(index + i, want + i * element);
    }
    done += run;
  }
}

}  // namespace gxp
