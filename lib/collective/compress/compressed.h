// All-reduces that send less between hosts, at the price of precision; off unless asked for. Within
// a host nothing is compressed: there the links are faster than the codecs.
//
// An object serves one buffer: it owns what the last call could not send, which the next call adds,
// so that nothing is lost for good (error feedback: Karimireddy et al., arXiv:1901.09847).
//   Method      one of compression_methods().
//   Bits        the same on every rank and in every run; sums of ranks are folded in f32, in rank
//               order.
//   Not finite  a NaN or an infinity makes the elements that are encoded together with it NaN or
//               infinite on every rank, and is not kept for the next call.
//   Memory      scratch and state are counted as kCommunication, allocated by the constructor.
//   Threads     one at a time, as the communicators.
//   Errors      those of the communicators.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lib/base/dtype.h"
#include "lib/collective/compress/host_groups.h"
#include "lib/device/device.h"

namespace gxp {

// A matrix inside a buffer, row by row.
struct MatrixPart {
  size_t begin = 0;
  size_t rows = 0;
  size_t columns = 0;
};

struct BufferShape {
  size_t count = 0;
  DType dtype = DType::kF32;              // f32, f16 or bf16; top_k and power_sgd: f32
  std::vector<MatrixPart> matrices = {};  // ascending, apart; what power_sgd compresses
};

struct CompressionOptions {
  std::string method = "int8";
  bool error_feedback = true;    // of the codecs; top_k and power_sgd always have it
  double top_k_fraction = 0.01;  // of the elements that are sent, at least one
  int power_sgd_rank = 4;        // columns of P and Q
  size_t piece_bytes = 4 << 20;  // of the buffer, in flight at a time: unit of pipelining
};

class CompressedAllReduce {
 public:
  virtual ~CompressedAllReduce() = default;
  // In place, as Communicator::all_reduce; kSum or kAvg over all ranks. `data` has the shape that
  // the object was made for.
  virtual void all_reduce(Memory data, ReduceOp op) = 0;
  // Payload bytes that one call sends from this rank, without the exact steps within its host.
  [[nodiscard]] virtual uint64_t wire_bytes() const = 0;
};

struct CompressionMethod {
  std::string_view name;
  std::string_view summary;
};
std::span<const CompressionMethod> compression_methods();

// `groups` and `device` outlive the object; objects may share them. All ranks call it with the
// same shape and options. Throws kConfig for an unknown method or a value out of range,
// kUnavailable for a dtype that the method does not have.
std::unique_ptr<CompressedAllReduce> make_compressed_all_reduce(const CompressionOptions& options,
                                                                const BufferShape& shape,
                                                                HostGroups& groups, Device& device);

}  // namespace gxp
