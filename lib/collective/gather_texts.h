// Texts of the ranks, brought to all of them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lib/collective/communicator.h"

namespace gxp {

// What all texts of one call have together at most: as much as a checkpoint's manifest, for which
// the longest of them are.
inline constexpr uint64_t kMaxGatheredBytes = uint64_t{1} << 30;

// [collective] Every rank's text, in order of rank. Errors: the communicator's, and text_offsets().
// Cost: memory for all texts, once in transit and once as strings; an all-gather of 8 bytes a rank,
// then an all-reduce of all texts.
std::vector<std::string> gather_texts(Communicator& communicator, std::string_view mine);

// Where each text begins when they follow each other, and at last where they end. Pure. Sizes come
// from the ranks: kPeer, naming the rank, if one is negative or the sum exceeds kMaxGatheredBytes.
std::vector<size_t> text_offsets(std::span<const int64_t> sizes);

}  // namespace gxp
