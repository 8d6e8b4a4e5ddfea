// Collectives by the switch between GPUs (switch_way.h), which is emulated: it begins its sums with
// the last GPU, so its bits are not those of the reduction tree.
#include "lib/collective/engine/device_memory/switch_way.h"

#include <algorithm>
#include <atomic>

#include "lib/tools/colltest/pattern.h"
#include "tests/collective/run_ranks_of.h"
#include "tests/combinations.h"
#include "tests/cuda/device_ranks.h"
#include "tests/cuda/emulation/cuda_runtime_api.h"
#include "tests/cuda/emulation/multicast.h"
#include "tests/cuda/forwarded_folds.h"

namespace gxp {
namespace {

using emulation::MulticastCall;

constexpr size_t kMostSwitchedBytes = 100000;
const CommunicatorOptions kOpenOrder{.selection = {.layout_invariant = false}};

// Counts the switch's work.
class WatchedFolds final : public ForwardedFolds {
 public:
  void fold_in_switch(Stream& stream, std::byte* to, const std::byte* from, size_t bytes,
                      DType dtype, ReduceOp op) override {
    ++works;
    ForwardedFolds::fold_in_switch(stream, to, from, bytes, dtype, op);
  }
  void store_by_switch(Stream& stream, std::byte* to, const std::byte* from,
                       size_t bytes) override {
    ++works;
    ForwardedFolds::store_by_switch(stream, to, from, bytes);
  }
  int works = 0;
};

// A rank with a GPU of its own, or GPU 0, whose shared buffers are kept.
class SwitchRank {
 public:
  explicit SwitchRank(Communicator& comm, bool own_gpu = true)
      : comm_(comm),
        device_(make_cuda_device(own_gpu ? comm.rank() : 0)),
        joined_(comm.join_device({*device_, folds_})),
        buffers_(*device_, kMostSwitchedBytes),
        stream_(device_->make_stream("calls")) {
    stream_->set_watch([this] { comm_.check(); });
    for (const int i : {0, 1}) kept_.push_back(comm.keep(buffers_.shared(i)));
  }
  void queue() { buffers_.queue_on(*stream_); }
  void forget() { kept_.clear(); }
  [[nodiscard]] const Support& nvls() const { return kept_[0].nvls(); }
  [[nodiscard]] GpuBuffers& buffers() { return buffers_; }
  // Values of which every sum is exact.
  void use_exact_values() {
    buffers_.fill_by([this](const Call& call, std::span<std::byte> bytes) {
      const std::vector<std::byte> period =
          pattern_input({call.dtype, call.op, comm_.world_size()}, comm_.rank());
      for (size_t at = 0; at < bytes.size(); at += period.size())
        std::copy_n(period.begin(), std::min(period.size(), bytes.size() - at), &bytes[at]);
    });
  }
  // What is wrong with the call, or that the switch had, on all ranks, another number of works.
  std::string compare(const Call& call, BufferKind kind, int works) {
    folds_.works = 0;
    std::string problem = buffers_.compare(comm_, call, kind);
    std::vector<int> all{folds_.works};
    comm_.all_reduce(memory_of(all), DType::kI32, ReduceOp::kSum);
    if (problem.empty() && all[0] != works)
      problem =
          fmt::format("{}, buffers {}: {} works of the switch", to_string(call), int(kind), all[0]);
    return problem;
  }

 private:
  Communicator& comm_;
  WatchedFolds folds_;
  std::unique_ptr<Device> device_;
  JoinedDevice joined_;
  GpuBuffers buffers_;
  std::unique_ptr<Stream> stream_;
  std::vector<KeptMemory> kept_;
};

Call sum_of_floats(size_t count) {
  return {.collective = Collective::kAllReduce, .dtype = DType::kF32, .count = count};
}

// Works of the switch on all ranks together.
int expected_works(const Call& call, BufferKind kind, int ranks) {
  const bool is_sum = call.collective == Collective::kAllReduce;
  const bool lies_alike = kind == BufferKind::kSharedInPlace || kind == BufferKind::kSharedApart;
  if (ranks < 4 || !lies_alike) return 0;
  if (call.collective == Collective::kBroadcast) return call.bytes() >= 512 ? 1 : 0;
  if (!is_sum || call.bytes() < size_t(512 * ranks)) return 0;
  return switch_reduces(call.op, call.dtype) ? ranks : 0;
}

// All that the switch reduces, and pairs of what it does and leaves.
std::vector<Row> rows_around_the_switch(int ranks) {
  using enum BufferKind;
  const std::vector types{DType::kF32, DType::kBF16, DType::kF16,
                          DType::kI32, DType::kI64,  DType::kI8};
  const std::vector ops{ReduceOp::kSum, ReduceOp::kMin, ReduceOp::kMax, ReduceOp::kAvg};
  // Around 512 bytes for each rank, or in all, and with rests behind 16 bytes.
  const auto least = size_t(512 * ranks);
  const std::vector<CallSize> sizes{{504},   {512},         {least, 0, -1},
                                    {least}, {least, 0, 1}, {kMostSwitchedBytes, 0, -3}};
  std::vector<Row> rows = combinations(
      std::vector{Collective::kAllReduce, Collective::kBroadcast, Collective::kReduceScatter,
                  Collective::kAllGather},
      types, ops, sizes,
      std::vector{kSharedInPlace, kSharedApart, kOneShared, kDifferByRank, kPlacedByRank});
  for (const DType dtype : types)
    for (const ReduceOp op : ops)
      for (const CallSize& size : sizes)
        if (switch_reduces(op, dtype))
          rows.emplace_back(Collective::kAllReduce, dtype, op, size, kSharedInPlace);
  return rows;
}

}  // namespace

TEST_CASE("the switch reduces what it can from four ranks on, exactly, and leaves the rest") {
  const int world_size = GENERATE(2, 3, 4, 8);
  const bool queued = GENERATE(false, true);
  const EmulatedGpus gpus(world_size);
  const std::vector<Row> rows = rows_around_the_switch(world_size);
  CAPTURE(world_size, queued);
  require_none_wrong(run_ranks_of(
      "shm", world_size,
      [&](Communicator& comm) -> std::string {
        SwitchRank rank(comm);
        rank.use_exact_values();
        if (queued) rank.queue();
        for (const auto& [collective, dtype, op, size, kind] : rows) {
          const Call call =
              make_call(collective, dtype, op, size.count(dtype, world_size), world_size);
          const std::string problem =
              rank.compare(call, kind, expected_works(call, kind, world_size));
          if (!problem.empty()) return problem;
        }
        return "";
      },
      kOpenOrder));
}

TEST_CASE("the switch's bits are its own, and it is not used where bits are to be reproducible") {
  constexpr int kRanks = 4;
  const EmulatedGpus gpus(kRanks);
  const auto problems = [&](const CommunicatorOptions& options, int works) {
    return run_ranks_of(
        "shm", kRanks,
        [&](Communicator& comm) {
          SwitchRank rank(comm);
          return rank.nvls().reason +
                 rank.compare(sum_of_floats(5000), BufferKind::kSharedInPlace, works);
        },
        options);
  };
  for (const std::string& problem : problems(kOpenOrder, kRanks))
    CHECK(contains(problem, "buffers 0: byte "));
  for (const std::string& problem : problems({}, 0))
    CHECK(
        problem.ends_with("train.deterministic = \"off\" lets it (in allreduce-test: no "
                          "--deterministic)"));
}

TEST_CASE("memory that is forgotten, or whose order is settled again, goes without the switch") {
  constexpr int kRanks = 4;
  const EmulatedGpus gpus(kRanks);
  require_none_wrong(run_ranks_of(
      "shm", kRanks,
      [](Communicator& comm) {
        SwitchRank rank(comm);
        rank.use_exact_values();
        const auto compare = [&](int works) {
          return rank.compare(sum_of_floats(5000), BufferKind::kSharedInPlace, works);
        };
        std::string problem = rank.nvls().reason + compare(kRanks);
        comm.set_selection({.layout_invariant = true});
        problem += compare(0);
        comm.set_selection(kOpenOrder.selection);
        problem += compare(kRanks);
        rank.forget();
        return problem + compare(0);
      },
      kOpenOrder));
}

TEST_CASE("buffers that do not begin at a multiple of 16 bytes go without the switch") {
  constexpr int kRanks = 4;
  const EmulatedGpus gpus(kRanks);
  const Collective collective = GENERATE(Collective::kAllReduce, Collective::kBroadcast);
  const int works = collective == Collective::kAllReduce ? kRanks : 1;
  require_none_wrong(run_ranks_of(
      "shm", kRanks,
      [&](Communicator& comm) {
        SwitchRank rank(comm);
        rank.use_exact_values();
        const Call call{.collective = collective, .dtype = DType::kF32, .count = 5000};
        std::string problem;
        for (const size_t begin : {0, 4, 16, 24}) {
          rank.buffers().begin_at(begin);
          problem += rank.compare(call, BufferKind::kSharedInPlace, begin % 16 == 0 ? works : 0);
        }
        return problem;
      },
      kOpenOrder));
}

TEST_CASE("what the driver refuses is told on all ranks, and they do without the switch") {
  constexpr int kRanks = 4;
  const EmulatedGpus gpus(kRanks);
  using enum MulticastCall;
  const auto [call, gpu, result, words] = GENERATE(table<MulticastCall, int, CUresult, std::string>(
      {{kSupport, 2, CUDA_ERROR_NOT_SUPPORTED, "rank 2: GPU 2 has no NVLink switch that adds"},
       {kGranularity, 0, CUDA_ERROR_NOT_SUPPORTED, "rank 0: make a multicast object for"},
       {kCreate, 0, CUDA_ERROR_NOT_PERMITTED, "rank 0: make a multicast object for"},
       {kAdd, 0, CUDA_ERROR_SYSTEM_NOT_READY, "does nvidia-fabricmanager run?"},
       {kExport, 0, CUDA_ERROR_NOT_SUPPORTED, "rank 0: share a multicast object for"},
       {kImport, 3, CUDA_ERROR_INVALID_VALUE, "rank 3: join a multicast object with"},
       {kAdd, 1, CUDA_ERROR_INVALID_VALUE, "rank 1: add 100 KiB of GPU 1 for the NVLink switch"},
       {kBind, 2, CUDA_ERROR_SYSTEM_NOT_READY, "rank 2: bind 100 KiB of GPU 2 for the NVLink"},
       {kMap, 3, CUDA_ERROR_OUT_OF_MEMORY, "rank 3: map 100 KiB for GPU 3: an error"}}));
  CAPTURE(int(call), gpu);
  emulation::set_multicast_hook([call = call, gpu = gpu, result = result](MulticastCall made) {
    int current = 0;
    cudaGetDevice(&current);
    return made == call && current == gpu ? result : CUDA_SUCCESS;
  });
  const auto found = run_ranks_of(
      "shm", kRanks,
      [](Communicator& comm) {
        SwitchRank rank(comm);
        return rank.nvls().reason + "; " +
               rank.compare(sum_of_floats(5000), BufferKind::kSharedInPlace, 0);
      },
      kOpenOrder);
  emulation::set_multicast_hook({});
  for (const std::string& text : found) {
    CHECK_THAT(text, Catch::Contains(words));
    CHECK(text == found[0]);
    CHECK(text.ends_with("; "));
  }
}

TEST_CASE("why the switch is not used is told") {
  const auto reason = [](int ranks, const CommunicatorOptions& options, bool own_gpus = true) {
    const EmulatedGpus gpus(own_gpus ? ranks : 1);
    return run_ranks_of(
        "shm", ranks, [&](Communicator& comm) { return SwitchRank(comm, own_gpus).nvls().reason; },
        options)[0];
  };
  CHECK(reason(4, kOpenOrder) == "");
  CHECK(reason(4, kOpenOrder, false) == "ranks share a GPU");
  CHECK(contains(reason(3, kOpenOrder), "among fewer than 4 ranks"));
  CHECK(reason(4, {.selection = {.layout_invariant = false, .nvls = false}}) ==
        "comm.nvls is false");
  const EmulatedGpus gpus(4);
  const auto ordinary = run_ranks_of(
      "shm", 4,
      [](Communicator& comm) {
        GpuRank gpu(comm, comm.rank());
        const Buffer buffer = gpu.device->allocate(4096, MemoryKind::kGradients);
        return comm.keep(buffer.memory()).nvls().reason;
      },
      kOpenOrder);
  CHECK(ordinary[0] == "rank 0: its memory is no allocation that peers map");
}

TEST_CASE("memories of unequal sizes do not lie behind one address") {
  const EmulatedGpus gpus(4);
  const auto reasons = run_ranks_of(
      "shm", 4,
      [](Communicator& comm) {
        GpuRank gpu(comm, comm.rank());
        const Buffer buffer =
            gpu.device->allocate_shareable(comm.rank() == 2 ? 8192 : 4096, MemoryKind::kGradients);
        return comm.keep(buffer.memory()).nvls().reason;
      },
      kOpenOrder);
  for (const std::string& reason : reasons)
    CHECK(reason ==
          "rank 2: join a multicast object with 8 KiB of GPU 2 for the NVLink switch: the other "
          "GPUs' memory has 4 KiB");
}

}  // namespace gxp
