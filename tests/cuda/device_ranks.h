// A rank with a GPU whose memory its calls work on, and calls there held against the host's.
#pragma once

#include <fmt/format.h>

#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "kernels/cuda/cuda_folds.h"
#include "lib/collective/communicator.h"
#include "lib/device/cuda_device.h"

namespace gxp {

struct GpuRank {
  explicit GpuRank(Communicator& comm, int index = 0)
      : device(make_cuda_device(index)), joined(comm.join_device({*device, *folds})) {}
  std::unique_ptr<Device> device;
  std::unique_ptr<DeviceFolds> folds = make_cuda_folds();
  JoinedDevice joined;
};

// Where a rank's buffers are.
enum class BufferKind {
  kSharedInPlace,
  kSharedApart,
  kOrdinaryInPlace,
  kOrdinaryApart,
  kOneShared,     // the input
  kDifferByRank,  // shared on even ranks, ordinary on odd ones
  kPlacedByRank,  // shared; in place on even ranks
};
inline std::vector<BufferKind> buffer_kinds() {
  using enum BufferKind;
  return {kSharedInPlace, kSharedApart,  kOrdinaryInPlace, kOrdinaryApart,
          kOneShared,     kDifferByRank, kPlacedByRank};
}

class GpuBuffers {
 public:
  GpuBuffers(Device& device, size_t bytes)
      : device_(device),
        shared_{device.allocate_shareable(bytes, MemoryKind::kGradients),
                device.allocate_shareable(bytes, MemoryKind::kGradients)},
        ordinary_{device.allocate(bytes, MemoryKind::kGradients),
                  device.allocate(bytes, MemoryKind::kGradients)} {}

  // Runs the call on the host and on the GPU with the same arbitrary bits: what differs, or "".
  std::string compare(Communicator& comm, Call call, BufferKind kind) {
    const int rank = comm.rank();
    const size_t size = size_of(call.dtype);
    const Extents extents = extents_of(call, rank, comm.world_size());
    call.factor = rank % 2 == 0 ? 0.5 : -3;
    auto [in, out] = of_kind(kind, rank);
    const bool in_place = in.data == out.data;
    std::mt19937_64 random(uint64_t(rank) + call.count);
    std::vector<uint64_t> bits(call.bytes() / sizeof(uint64_t) + 1);
    for (uint64_t& word : bits) word = random();
    std::vector<std::byte> host_in(call.bytes());
    std::memcpy(host_in.data(), bits.data(), host_in.size());
    std::vector<std::byte> host_out = host_in;
    const auto part = [&](Memory all, Range range) {
      return all.slice(range.begin * size, range.count * size);
    };
    const Memory input = part(in, extents.input);
    const Memory output = part(out, extents.output);
    device_.copy(in.slice(0, call.bytes()), memory_of(host_in));
    if (!in_place) device_.copy(out.slice(0, call.bytes()), memory_of(host_in));
    comm.run(call, part(in_place ? memory_of(host_out) : memory_of(host_in), extents.input),
             part(memory_of(host_out), extents.output));
    comm.run(call, input, output);
    std::vector<std::byte> found(output.bytes);
    device_.copy(memory_of(found), output);
    const Memory expected = part(memory_of(host_out), extents.output);
    for (size_t i = 0; i < found.size(); ++i) {
      if (found[i] != expected.data[i])
        return fmt::format("{} at rank {} of {}, buffers {}: byte {} is {:02x}, not {:02x}",
                           to_string(call), rank, comm.world_size(), int(kind), i, int(found[i]),
                           int(expected.data[i]));
    }
    return "";
  }

 private:
  [[nodiscard]] std::pair<Memory, Memory> of_kind(BufferKind kind, int rank) const {
    const Memory a = shared_[0].memory();
    const Memory b = shared_[1].memory();
    const Memory c = ordinary_[0].memory();
    const Memory d = ordinary_[1].memory();
    const bool even = rank % 2 == 0;
    switch (kind) {
      case BufferKind::kSharedInPlace:
        return {a, a};
      case BufferKind::kSharedApart:
        return {a, b};
      case BufferKind::kOrdinaryInPlace:
        return {c, c};
      case BufferKind::kOrdinaryApart:
        return {c, d};
      case BufferKind::kOneShared:
        return {a, d};
      case BufferKind::kDifferByRank:
        return even ? std::pair(a, b) : std::pair(c, d);
      case BufferKind::kPlacedByRank:
        return {a, even ? a : b};
    }
    return {};
  }

  Device& device_;
  Buffer shared_[2];
  Buffer ordinary_[2];
};

}  // namespace gxp
