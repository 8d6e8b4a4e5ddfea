// The ids of words that were seen lately. One place for each hash: a word drives out the one that
// has its place. Only short words are kept; most of a text is made of them.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>
#include <vector>

#include "lib/base/hash.h"

namespace gxp {

class WordCache {
 public:
  static constexpr size_t kMaxBytes = 23, kMaxIds = 9;
  WordCache() : entries_(kEntries) {}

  // The place of a word of at most kMaxBytes.
  struct Key {
    std::array<uint64_t, 3> bytes{};  // the word, zeros, and its length last
    size_t place = 0;
  };
  static Key key_of(std::string_view word) {
    Key key;
    std::memcpy(key.bytes.data(), word.data(), word.size());
    key.bytes[2] |= uint64_t(word.size() + 1) << 56;
    key.place = mix64(key.bytes[0] ^ mix64(key.bytes[1] ^ mix64(key.bytes[2]))) % kEntries;
    return key;
  }
  // Appends the ids; false: the word is not here.
  bool find(const Key& key, std::vector<int32_t>& ids) const {
    const Entry& entry = entries_[key.place];
    if (entry.bytes != key.bytes) return false;
    ids.insert(ids.end(), entry.ids.begin(), entry.ids.begin() + entry.count);
    return true;
  }
  void keep(const Key& key, std::span<const int32_t> ids) {
    if (ids.size() > kMaxIds) return;
    Entry& entry = entries_[key.place];
    entry.bytes = key.bytes;
    entry.count = uint32_t(ids.size());
    std::copy(ids.begin(), ids.end(), entry.ids.begin());
  }

 private:
  static constexpr size_t kEntries = size_t{1} << 16;  // 4 MiB
  struct Entry {
    std::array<uint64_t, 3> bytes{};
    uint32_t count = 0;
    std::array<int32_t, kMaxIds> ids{};
  };

  std::vector<Entry> entries_;
};

}  // namespace gxp
