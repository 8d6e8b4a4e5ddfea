// Where a micro-batch lies on the device, and where the host writes it.
#pragma once

#include <chrono>

#include "lib/device/mirror.h"
#include "lib/tensor/tensor.h"

namespace gxp {

// Reading ahead keeps up or has failed; a disk that hangs longer than this is broken.
constexpr auto kDataTimeout = std::chrono::seconds(300);

// Each operation that fills a batch has one of its own, so that none is written again before the
// step's end, while the device may still copy it.
class BatchPlace {
 public:
  // `tokens`, `targets`: of `shape`, i32, in the device's memory.
  BatchPlace(Device& device, Memory tokens, Memory targets, const Shape& shape)
      : tokens_(device, tokens), targets_(device, targets), shape_(shape) {}
  // For the host to write.
  [[nodiscard]] Tensor tokens() const { return {tokens_.host(), DType::kI32, shape_}; }
  [[nodiscard]] Tensor targets() const { return {targets_.host(), DType::kI32, shape_}; }
  // To the device, in order with what `stream` does next.
  void send(Stream& stream) const {
    tokens_.send(stream);
    targets_.send(stream);
  }

 private:
  Mirror tokens_;
  Mirror targets_;
  Shape shape_;
};

}  // namespace gxp
