// A rank with a GPU whose memory its calls work on, and calls there held against the host's.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include "kernels/cuda/cuda_folds.h"
#include "lib/collective/communicator.h"
#include "lib/device/cuda_device.h"
#include "tests/catch.h"

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

  // Calls are queued on it from now on, instead of run.
  void queue_on(Stream& stream) { stream_ = &stream; }
  // What a rank's buffer holds before a call, from now on; arbitrary bits at first.
  using Fill = std::function<void(const Call&, std::span<std::byte>)>;
  void fill_by(Fill fill) { fill_ = std::move(fill); }
  // So many bytes behind the begin of every buffer, from now on.
  void begin_at(size_t bytes) { begin_ = bytes; }
  // The shared allocations.
  [[nodiscard]] Memory shared(int i) const { return shared_[i].memory(); }
  // Runs the call on the host and on the GPU with the same bits: what differs, or "".
  std::string compare(Communicator& comm, Call call, BufferKind kind) {
    const int rank = comm.rank();
    const size_t size = size_of(call.dtype);
    const Extents extents = extents_of(call, rank, comm.world_size());
    call.factor = rank % 2 == 0 ? 0.5 : -3;
    auto [in, out] = of_kind(kind, rank);
    const bool in_place = in.data == out.data;
    std::vector<std::byte> host_in(call.bytes());
    if (fill_)
      fill_(call, host_in);
    else
      fill_with_bits(uint64_t(rank) + call.count, host_in);
    std::vector<std::byte> host_out = host_in;
    const auto part = [&](Memory all, Range range) {
      return all.slice(range.begin * size, range.count * size);
    };
    for (Memory* all : {&in, &out}) *all = all->slice(begin_, call.bytes());
    const Memory input = part(in, extents.input);
    const Memory output = part(out, extents.output);
    device_.copy(in, memory_of(host_in));
    if (!in_place) device_.copy(out, memory_of(host_in));
    comm.run(call, part(in_place ? memory_of(host_out) : memory_of(host_in), extents.input),
             part(memory_of(host_out), extents.output));
    run_on_gpu(comm, call, input, output);
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

  static void fill_with_bits(uint64_t seed, std::span<std::byte> bytes) {
    std::mt19937_64 random(seed);
    for (size_t at = 0; at < bytes.size(); at += sizeof(uint64_t)) {
      const uint64_t word = random();
      std::memcpy(&bytes[at], &word, std::min(sizeof word, bytes.size() - at));
    }
  }

  void run_on_gpu(Communicator& comm, const Call& call, ConstMemory input, Memory output) {
    if (stream_ == nullptr) return comm.run(call, input, output);
    comm.enqueue(call, input, output, *stream_);
    stream_->finish(Deadline::after(std::chrono::seconds(60)));
    comm.check();
  }

  Device& device_;
  Stream* stream_ = nullptr;
  Fill fill_;
  size_t begin_ = 0;
  Buffer shared_[2];
  Buffer ordinary_[2];
};

inline std::vector<Collective> moving_collectives() {
  std::vector<Collective> all(collectives().begin(), collectives().end());
  std::erase(all, Collective::kBarrier);
  return all;
}

inline Call make_call(Collective collective, DType dtype, ReduceOp op, size_t count, int ranks) {
  if (collective == Collective::kAllToAll) count -= count % size_t(ranks);
  return {.collective = collective,
          .dtype = dtype,
          .op = reduces(collective) ? op : ReduceOp::kSum,
          .count = count,
          .root = int(count % size_t(ranks))};
}

// Of a call: so many bytes, and elements for each rank, and more elements.
struct CallSize {
  size_t bytes = 0;
  size_t by_rank = 0;
  int more = 0;
  [[nodiscard]] size_t count(DType dtype, int ranks) const {
    return bytes / size_of(dtype) + size_t(int(by_rank * size_t(ranks)) + more);
  }
};

using Row = std::tuple<Collective, DType, ReduceOp, CallSize, BufferKind>;

// What is wrong with one of these calls, or "". Queued ones: each rank has a GPU.
inline std::string compare_all(Communicator& comm, const std::vector<Row>& rows, size_t most_bytes,
                               bool queued = false) {
  GpuRank gpu(comm, queued ? comm.rank() : 0);
  if (!gpu.joined.support()) return gpu.joined.support().reason;
  GpuBuffers buffers(*gpu.device, most_bytes);
  const std::unique_ptr<Stream> stream = gpu.device->make_stream("calls");
  stream->set_watch([&] { comm.check(); });
  if (comm.queues_calls() != (queued && comm.world_size() > 1)) return "calls are queued, or not";
  if (comm.queues_calls()) buffers.queue_on(*stream);
  for (const auto& [collective, dtype, op, size, kind] : rows) {
    if (!supports(op, dtype)) continue;
    const int ranks = comm.world_size();
    const std::string problem = buffers.compare(
        comm, make_call(collective, dtype, op, size.count(dtype, ranks), ranks), kind);
    if (!problem.empty()) return problem;
  }
  return "";
}

inline void require_none_wrong(const std::vector<std::string>& problems) {
  for (const std::string& problem : problems) REQUIRE(problem == "");
}

}  // namespace gxp
