// The part of a stream of bytes that a parser looks at: it moves forward, and grows to the largest
// piece that must be seen whole.
#pragma once

#include <cstddef>
#include <limits>
#include <memory>
#include <string>
#include <string_view>

#include "lib/data/documents/byte_source.h"

namespace gxp {

// The largest document, in bytes: 2 GiB. Tokenizers count them in 32 bits.
inline constexpr size_t kMaxDocumentBytes = size_t{1} << 31;

// Threads: one at a time. Cost: memory of one to two times the largest piece, 1 MiB at least.
class ByteWindow {
 public:
  // Bytes that may be read behind any view, whatever they hold: simdjson's blocks need them.
  static constexpr size_t kPadding = 64;

  // `expected_bytes`: how much is going to be seen at once, if that is known.
  ByteWindow(std::unique_ptr<ByteSource> source, std::string path, size_t expected_bytes = 0);

  // What has been read and not dropped. Valid until the next extend().
  [[nodiscard]] std::string_view view() const { return {buffer_.get() + begin_, end_ - begin_}; }
  void drop(size_t count) { begin_ += count; }
  // Adds bytes behind the view, up to `most`; false if there are none. Errors: those of ByteSource;
  // kCorrupt if the view would become larger than kMaxDocumentBytes.
  bool extend(size_t most = std::numeric_limits<size_t>::max());
  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] uint64_t consumed() const { return source_->consumed(); }  // of the file

 private:
  void make_room();

  std::unique_ptr<ByteSource> source_;
  std::string path_;
  size_t capacity_;
  std::unique_ptr<char[]> buffer_;  // with kPadding more than the capacity
  size_t begin_ = 0, end_ = 0;
};

}  // namespace gxp
