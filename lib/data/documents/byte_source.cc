#include "lib/data/documents/byte_source.h"

#include <fmt/format.h>
#include <zlib.h>
#include <zstd.h>
#include <zstd_errors.h>

#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

#include "lib/base/error.h"
#include "lib/data/files/source_file.h"

namespace gxp {
namespace {

constexpr size_t kPieceBytes = size_t{1} << 18;
constexpr int kZstdWindowLog = 27;

class PlainSource : public ByteSource {
 public:
  explicit PlainSource(const std::string& path) : file_(path) {}

  size_t read(std::span<char> out) override {
    const size_t count = std::min<uint64_t>(out.size(), file_.bytes() - at_);
    file_.read(at_, std::as_writable_bytes(out.first(count)));
    at_ += count;
    return count;
  }
  [[nodiscard]] uint64_t consumed() const override { return at_; }
  [[nodiscard]] uint64_t left() const { return file_.bytes() - at_; }

 private:
  SourceFile file_;
  uint64_t at_ = 0;
};

// The compressed bytes of a file in pieces.
class PackedInput {
 public:
  explicit PackedInput(const std::string& path)
      : path_(path), source_(path), buffer_(kPieceBytes) {}

  // What is not yet taken; empty at the end.
  std::span<const char> at_hand() {
    if (begin_ == end_ && source_.left() > 0) {
      begin_ = 0;
      end_ = source_.read(buffer_);
    }
    return std::span(buffer_).subspan(begin_, end_ - begin_);
  }
  void take(size_t count) { begin_ += count; }
  [[nodiscard]] uint64_t taken() const { return source_.consumed() - (end_ - begin_); }
  [[noreturn]] void refuse(std::string_view why) const {
    fail(ErrorKind::kCorrupt, "decompress {}: {}", path_, why);
  }

 private:
  std::string path_;
  PlainSource source_;
  std::vector<char> buffer_;
  size_t begin_ = 0, end_ = 0;
};

class GzipSource : public ByteSource {
 public:
  explicit GzipSource(const std::string& path) : input_(path) {
    constexpr int kGzipHeader = 16;  // zlib.h: added to the window's bits
    if (inflateInit2(&stream_, MAX_WBITS + kGzipHeader) != Z_OK) throw std::bad_alloc();
  }
  GzipSource(const GzipSource&) = delete;
  GzipSource& operator=(const GzipSource&) = delete;
  ~GzipSource() override { inflateEnd(&stream_); }

  size_t read(std::span<char> out) override {
    const size_t room = std::min<size_t>(out.size(), std::numeric_limits<uInt>::max());
    stream_.next_out = reinterpret_cast<Bytef*>(out.data());
    stream_.avail_out = uInt(room);
    while (stream_.avail_out == room && begin_member()) inflate_some();
    return room - stream_.avail_out;
  }
  [[nodiscard]] uint64_t consumed() const override { return input_.taken(); }

 private:
  // Whether there is more to inflate: the member goes on, or another one begins.
  bool begin_member() {
    if (in_member_) return true;
    if (members_ > 0) skip_padding();
    if (input_.at_hand().empty()) return false;
    if (members_ > 0 && inflateReset(&stream_) != Z_OK) input_.refuse("zlib cannot begin anew");
    in_member_ = true;
    return true;
  }
  // Zeros behind the last member fill a block, as on tapes; gzip ignores them, too.
  void skip_padding() {
    for (auto bytes = input_.at_hand(); !bytes.empty() && bytes[0] == 0; bytes = input_.at_hand())
      input_.take(1);
  }
  void inflate_some() {
    const std::span<const char> bytes = input_.at_hand();
    if (bytes.empty()) input_.refuse("the gzip stream ends early; the file is cut");
    // zlib reads these bytes only, whatever the type says.
    stream_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
    stream_.avail_in = uInt(bytes.size());
    const int result = inflate(&stream_, Z_NO_FLUSH);
    input_.take(bytes.size() - stream_.avail_in);
    if (result == Z_STREAM_END) {
      in_member_ = false;
      ++members_;
    } else if (result == Z_MEM_ERROR) {
      throw std::bad_alloc();
    } else if (result != Z_OK && result != Z_BUF_ERROR) {
      refuse();
    }
  }
  [[noreturn]] void refuse() const {
    const std::string_view text = stream_.msg != nullptr ? stream_.msg : "no deflate data";
    if (text == "incorrect data check") input_.refuse("the CRC-32 of gzip does not match");
    if (text == "incorrect length check") input_.refuse("the length of gzip does not match");
    if (members_ > 0 && text == "incorrect header check")
      input_.refuse("something other than gzip follows the end of its data");
    input_.refuse(fmt::format("zlib: {}", text));
  }

  PackedInput input_;
  z_stream stream_ = {};
  bool in_member_ = false;
  uint64_t members_ = 0;  // that have ended
};

class ZstdSource : public ByteSource {
 public:
  explicit ZstdSource(const std::string& path) : input_(path), stream_(ZSTD_createDStream()) {
    if (stream_ == nullptr) throw std::bad_alloc();
    ZSTD_DCtx_setParameter(stream_.get(), ZSTD_d_windowLogMax, kZstdWindowLog);
  }

  size_t read(std::span<char> out) override {
    ZSTD_outBuffer to{out.data(), out.size(), 0};
    while (to.pos == 0) {
      const std::span<const char> bytes = input_.at_hand();
      if (bytes.empty() && !in_frame_) return 0;
      ZSTD_inBuffer from{bytes.data(), bytes.size(), 0};
      const size_t result = ZSTD_decompressStream(stream_.get(), &to, &from);
      if (ZSTD_isError(result) != 0) refuse(result);
      input_.take(from.pos);
      in_frame_ = result != 0;
      if (bytes.empty() && in_frame_ && to.pos == 0)
        input_.refuse("the zstd frame ends early; the file is cut");
    }
    return to.pos;
  }
  [[nodiscard]] uint64_t consumed() const override { return input_.taken(); }

 private:
  [[noreturn]] void refuse(size_t result) const {
    const char* const text = ZSTD_getErrorName(result);
    if (ZSTD_getErrorCode(result) == ZSTD_error_frameParameter_windowTooLarge)
      input_.refuse(
          "its zstd frame looks back by more than 128 MiB; compress it with --long=27 or less");
    input_.refuse(fmt::format("zstd: {}", text));
  }
  struct Free {
    void operator()(ZSTD_DStream* stream) const { ZSTD_freeDStream(stream); }
  };

  PackedInput input_;
  std::unique_ptr<ZSTD_DStream, Free> stream_;
  bool in_frame_ = false;
};

}  // namespace

std::unique_ptr<ByteSource> open_bytes(const std::string& path, DataKind kind) {
  GXP_ASSERT(holds_text(kind));
  if (kind == DataKind::kGzip) return std::make_unique<GzipSource>(path);
  if (kind == DataKind::kZstd) return std::make_unique<ZstdSource>(path);
  return std::make_unique<PlainSource>(path);
}

}  // namespace gxp
