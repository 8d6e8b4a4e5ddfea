// The fastest choice, such as cuBLASLt's algorithm for a product: timed once per kind of GPU, then
// read from a file, so that later runs and the other ranks of this host have the same bits.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>

#include "lib/base/fd.h"

namespace gxp {

// A line of the file: "KEY: 8 words in hex".
using CachedChoice = std::array<uint64_t, 8>;

//   Threads   one at a time; any number of processes share a file.
//   Errors    kIo: the file cannot be made, read or written. A line that is broken, such as one
//             that a full disk has cut off, is skipped with a warning, and its entry is timed
//             again.
class ChoiceCache {
 public:
  // `path`: the file; its folder is made.
  explicit ChoiceCache(std::string path);
  // The file's entry for `key`, else the result of `time`, which is then written there unless it is
  // nothing. While one process times, the others wait; `time` asks no cache itself.
  std::optional<CachedChoice> choose(const std::string& key,
                                     const std::function<std::optional<CachedChoice>()>& time);
  // The file's entry for `key`, if there is one.
  std::optional<CachedChoice> find(const std::string& key);

 private:
  [[nodiscard]] Fd lock() const;
  void read(int fd);

  std::string path_;
  std::map<std::string, CachedChoice> known_;
  int lines_read_ = 0;           // by the last read()
  bool ends_in_a_line_ = false;  // which lacks its newline
};

}  // namespace gxp
