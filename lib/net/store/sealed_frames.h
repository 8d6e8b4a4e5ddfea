// Reads and writes the frames of one sealed connection between a Store and its server, at either
// end.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "lib/net/socket/frame.h"
#include "lib/net/socket/seal.h"

namespace gxp {

class FrameReader {
 public:
  // `sender` is for errors: "what rank 3 at 10.0.0.7:4711 sent to rank 0".
  FrameReader(Cipher cipher, const SealKey& key, std::string sender, size_t max_value_bytes)
      : opener_(cipher, key, Protection::kEncrypt),
        sender_(std::move(sender)),
        max_value_bytes_(max_value_bytes) {}

  // Takes bytes as they arrive.
  void add(std::string_view bytes) { sealed_ += bytes; }

  // The next whole frame, if it has arrived. Throws Tampered, and kPeer as take_frame().
  std::optional<Frame> next() {
    size_t opened = 0;
    open_sealed(sealed_, &opened, opener_, sender_, text_);
    sealed_.erase(0, opened);
    auto frame = take_frame(text_, &taken_, max_value_bytes_);
    if (!frame) text_.erase(0, std::exchange(taken_, 0));
    return frame;
  }

 private:
  Opener opener_;
  std::string sender_;
  size_t max_value_bytes_;
  std::string sealed_;
  std::string text_;
  size_t taken_ = 0;  // bytes of text_
};

// Appends the frame's records to `out`.
inline void append_sealed(std::string& out, const Frame& frame, Sealer& sealer) {
  std::string text;
  append_frame(text, frame);
  append_sealed(out, text, sealer);
}

}  // namespace gxp
