#include "lib/data/documents/byte_window.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "lib/base/bytes.h"
#include "lib/base/error.h"

namespace gxp {
namespace {

constexpr size_t kLeastCapacity = size_t{1} << 20;

}  // namespace

ByteWindow::ByteWindow(std::unique_ptr<ByteSource> source, std::string path, size_t expected_bytes)
    : source_(std::move(source)),
      path_(std::move(path)),
      // One byte more, so that the end is seen without growing.
      capacity_(std::clamp(expected_bytes + 1, kLeastCapacity, kMaxDocumentBytes)),
      // Not zeroed: a large buffer is touched only as far as it is filled.
      buffer_(new char[capacity_ + kPadding]) {}

bool ByteWindow::extend(size_t most) {
  if (end_ == capacity_) make_room();
  const size_t count =
      source_->read(std::span(buffer_.get() + end_, std::min(most, capacity_ - end_)));
  end_ += count;
  return count > 0;
}

void ByteWindow::make_room() {
  const size_t kept = end_ - begin_;
  if (kept == kMaxDocumentBytes)
    fail(ErrorKind::kCorrupt,
         "read data from {}: a document is larger than {}; cut it, or set data.document_separator",
         path_, format_bytes(kMaxDocumentBytes));
  // At least a half of the room is for new bytes: so the moves cost less than the reads.
  if (kept <= capacity_ / 2) {
    std::memmove(buffer_.get(), buffer_.get() + begin_, kept);
  } else {
    capacity_ = std::min(2 * capacity_, kMaxDocumentBytes);
    std::unique_ptr<char[]> larger(new char[capacity_ + kPadding]);
    std::memcpy(larger.get(), buffer_.get() + begin_, kept);
    buffer_ = std::move(larger);
  }
  begin_ = 0;
  end_ = kept;
}

}  // namespace gxp
