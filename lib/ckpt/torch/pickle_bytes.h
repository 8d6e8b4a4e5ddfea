// The bytes of a pickle, read one after the other. Only pickle_machine.cc and pickle_bytes.cc
// include it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "lib/ckpt/zip/file_range.h"

namespace gxp {

class PickleBytes {
 public:
  PickleBytes(const FileRange& range, uint64_t begin);

  [[nodiscard]] uint64_t position() const { return filled_ - (buffer_.size() - used_); }
  [[nodiscard]] uint64_t remaining() const { return end_ - position(); }

  uint8_t byte();
  uint64_t little(size_t bytes);  // a number of up to 8 bytes
  uint64_t big(size_t bytes);
  // Appends the next `count` bytes; kCorrupt, before anything is read, if fewer remain.
  void append(uint64_t count, std::string& out);
  // Without its '\n'; up to 256 bytes, as names of modules and classes have.
  std::string line();
  // kCorrupt with the position of the last opcode.
  template <class... Args>
  [[noreturn]] void refuse(fmt::format_string<Args...> format, Args&&... args) const {
    refuse_text(fmt::format(format, std::forward<Args>(args)...));
  }
  void mark_opcode() { opcode_ = position(); }

 private:
  [[noreturn]] void refuse_text(const std::string& reason) const;
  void fill();

  const FileRange& range_;
  uint64_t end_;     // in the range: where the range ends, or the limit
  uint64_t filled_;  // up to where the range has been read
  uint64_t opcode_;
  std::string buffer_;
  size_t used_ = 0;
};

}  // namespace gxp
