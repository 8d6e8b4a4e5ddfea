#include "lib/ckpt/torch/pickle_bytes.h"

#include <algorithm>

#include "lib/ckpt/torch/pickle.h"

namespace gxp {
namespace {

constexpr uint64_t kPickleBuffer = 65536;
constexpr size_t kMaxPickleLine = 256;

}  // namespace

PickleBytes::PickleBytes(const FileRange& range, uint64_t begin)
    : range_(range),
      end_(begin + std::min(range.bytes - begin, kMaxPickleBytes)),
      filled_(begin),
      opcode_(begin) {}

void PickleBytes::refuse_text(const std::string& reason) const {
  fail(ErrorKind::kCorrupt, "read {}: pickle, offset {}: {}", range_.file->path(),
       range_.offset + opcode_, reason);
}

void PickleBytes::fill() {
  if (filled_ == end_)
    refuse("the pickle is truncated, or has more than {} bytes", kMaxPickleBytes);
  buffer_.resize(std::min(kPickleBuffer, end_ - filled_));
  range_.read(filled_, memory_of(buffer_));
  filled_ += buffer_.size();
  used_ = 0;
}

uint8_t PickleBytes::byte() {
  if (used_ == buffer_.size()) fill();
  return uint8_t(buffer_[used_++]);
}

uint64_t PickleBytes::little(size_t bytes) {
  uint64_t value = 0;
  for (size_t i = 0; i < bytes; ++i) value |= uint64_t{byte()} << (8 * i);
  return value;
}

uint64_t PickleBytes::big(size_t bytes) {
  uint64_t value = 0;
  for (size_t i = 0; i < bytes; ++i) value = value << 8 | byte();
  return value;
}

void PickleBytes::append(uint64_t count, std::string& out) {
  if (count > remaining())
    refuse("{} bytes of text would follow, but {} remain", count, remaining());
  while (count > 0) {
    if (used_ == buffer_.size()) fill();
    const size_t taken = std::min<uint64_t>(count, buffer_.size() - used_);
    out.append(buffer_, used_, taken);
    used_ += taken;
    count -= taken;
  }
}

std::string PickleBytes::line() {
  std::string text;
  for (;;) {
    const char next = char(byte());
    if (next == '\n') return text;
    if (text.size() == kMaxPickleLine) refuse("a name has more than {} bytes", kMaxPickleLine);
    text += next;
  }
}

}  // namespace gxp
