#include "lib/collective/communicator.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <string>

#include "lib/base/error.h"
#include "lib/collective/algorithm/algorithm.h"
#include "lib/transport/faulty.h"
#include "tests/catch.h"
#include "tests/collective/run_ranks.h"
#include "tests/collective/values.h"

using namespace gxp;

namespace {

constexpr DType kFloats[] = {DType::kF32, DType::kF64, DType::kBF16, DType::kF16};
constexpr ReduceOp kOps[] = {ReduceOp::kSum, ReduceOp::kAvg, ReduceOp::kMin, ReduceOp::kMax,
                             ReduceOp::kProd};

CommunicatorOptions options_for(std::string_view algorithm) {
  CommunicatorOptions options;
  options.algorithm = algorithm;
  options.segment_bytes = 1024;  // a few hundred elements already need several
  return options;
}

double combine(double a, double b, ReduceOp op) {
  if (op == ReduceOp::kProd) return a * b;
  if (op == ReduceOp::kMin) return std::min(a, b);
  if (op == ReduceOp::kMax) return std::max(a, b);
  return a + b;
}

double reduced(int world_size, size_t i, ReduceOp op) {
  double value = small_integer(0, i);
  for (int rank = 1; rank < world_size; ++rank) value = combine(value, small_integer(rank, i), op);
  return op == ReduceOp::kAvg ? value / world_size : value;
}

// Averages are rounded, everything else is exact.
bool agrees(double have, double want, DType dtype, ReduceOp op) {
  if (op != ReduceOp::kAvg) return have == want;
  const double ulp = dtype == DType::kBF16 ? 1.0 / 128 : dtype == DType::kF16 ? 1.0 / 1024 : 1e-6;
  return std::abs(have - want) <= ulp * std::abs(want);
}

// "" or where `range` of `data` is not what the reduction over all ranks gives.
std::string check_reduced(const Values& data, Range range, int world_size, ReduceOp op) {
  for (size_t i = range.begin; i < range.end(); ++i) {
    const double want = reduced(world_size, i, op);
    if (agrees(data.get(i), want, data.dtype, op)) continue;
    return fmt::format("{} {} of {}: element {} is {}, not {}", to_string(op),
                       to_string(data.dtype), data.count(), i, data.get(i), want);
  }
  return "";
}

std::string check_all_reduce(Communicator& comm, DType dtype, ReduceOp op, size_t count) {
  Values data = small_integers(dtype, comm.rank(), count);
  comm.all_reduce(data.memory(), dtype, op);
  return check_reduced(data, {0, count}, comm.world_size(), op);
}

std::string check_reduce_scatter(Communicator& comm, DType dtype, ReduceOp op, size_t count) {
  Values data = small_integers(dtype, comm.rank(), count);
  comm.reduce_scatter(data.memory(), dtype, op);
  const Range mine = Chunks(count, comm.world_size())[comm.rank()];
  return check_reduced(data, mine, comm.world_size(), op);
}

std::string check_all_gather(Communicator& comm, DType dtype, size_t count) {
  const Range mine = Chunks(count, comm.world_size())[comm.rank()];
  const Values whole = small_integers(dtype, 0, count);
  Values data(dtype, count);
  for (size_t i = mine.begin; i < mine.end(); ++i) data.set(i, whole.get(i));
  comm.all_gather(data.memory(), dtype);
  return data.bytes == whole.bytes ? "" : fmt::format("all-gather of {} is wrong", count);
}

std::string check_broadcasts(Communicator& comm, DType dtype, size_t count) {
  for (int root = 0; root < comm.world_size(); ++root) {
    Values data = small_integers(dtype, comm.rank(), count);
    comm.broadcast(data.memory(), root);
    if (data.bytes == small_integers(dtype, root, count).bytes) continue;
    return fmt::format("broadcast of {} from {} is wrong", count, root);
  }
  return "";
}

// The first thing that is wrong with any operation, dtype and count, or "".
std::string check_everything(Communicator& comm) {
  const auto n = static_cast<size_t>(comm.world_size());
  for (const DType dtype : kFloats) {
    for (const size_t count : {size_t{0}, size_t{1}, size_t{7}, n - 1, n + 1, size_t{4099}}) {
      std::vector<std::string> found = {check_all_gather(comm, dtype, count),
                                        check_broadcasts(comm, dtype, count)};
      for (const ReduceOp op : kOps) {
        found.push_back(check_all_reduce(comm, dtype, op, count));
        found.push_back(check_reduce_scatter(comm, dtype, op, count));
      }
      for (const std::string& problem : found) {
        if (!problem.empty()) return problem;
      }
    }
  }
  return check_all_reduce(comm, DType::kF32, ReduceOp::kSum, 50021);
}

void all_reduce_sum(Communicator& comm, Memory data) {
  comm.all_reduce(data, DType::kF32, ReduceOp::kSum);
}

// Runs fn and returns what the communicator threw, or "no error".
template <class Fn>
std::string failure_of(const Fn& fn) {
  try {
    fn();
  } catch (const Error& error) {
    return fmt::format("{}: {}", to_string(error.kind()), error.what());
  }
  return "no error";
}

}  // namespace

TEST_CASE("every collective gives what the oracle gives") {
  const std::string algorithm = GENERATE("ring", "halving-doubling", "auto");
  const int world_size = GENERATE(1, 2, 3, 4, 5, 8);
  CAPTURE(algorithm, world_size);
  const auto problems = run_ranks(world_size, check_everything, options_for(algorithm));
  for (const std::string& problem : problems) CHECK(problem == "");
}

TEST_CASE("all ranks hold the same bits, also where sums depend on the order") {
  const std::string algorithm = GENERATE("ring", "halving-doubling");
  const int world_size = GENERATE(2, 3, 5, 8);
  const auto results = run_ranks(
      world_size,
      [](Communicator& comm) {
        auto data = rough_floats(comm.rank(), 4099);
        all_reduce_sum(comm, memory_of(data));
        return data;
      },
      options_for(algorithm));
  for (const auto& result : results) CHECK(result == results.front());
}

TEST_CASE("a layout-invariant all-reduce gives the same bits however the buffer is cut") {
  const int world_size = GENERATE(2, 3, 4, 5, 7, 8);
  const size_t bucket = GENERATE(1000, 997, 4099, 50);
  CAPTURE(world_size, bucket);
  const auto same = run_ranks(world_size, [&](Communicator& comm) {
    auto whole = rough_floats(comm.rank(), 4099);
    auto cut = whole;
    all_reduce_sum(comm, memory_of(whole));
    for (size_t begin = 0; begin < cut.size(); begin += bucket) {
      const size_t count = std::min(bucket, cut.size() - begin);
      all_reduce_sum(comm, memory_of(cut).slice(begin * 4, count * 4));
    }
    return int{whole == cut};
  });
  CHECK(same == std::vector<int>(static_cast<size_t>(world_size), 1));
}

TEST_CASE("a layout-invariant reduce-scatter gives the bits of the all-reduce") {
  const int world_size = GENERATE(2, 3, 4, 5, 6, 8);
  const auto same = run_ranks(world_size, [](Communicator& comm) {
    auto whole = rough_floats(comm.rank(), 4099);
    auto scattered = whole;
    all_reduce_sum(comm, memory_of(whole));
    comm.reduce_scatter(memory_of(scattered), DType::kF32, ReduceOp::kSum);
    const Range mine = Chunks(whole.size(), comm.world_size())[comm.rank()];
    const auto begin = static_cast<long>(mine.begin);
    const auto end = static_cast<long>(mine.end());
    return int{std::equal(whole.begin() + begin, whole.begin() + end, scattered.begin() + begin)};
  });
  CHECK(same == std::vector<int>(static_cast<size_t>(world_size), 1));
}

TEST_CASE("started calls run together and may be waited for in any order") {
  const auto problems = run_ranks(3, [](Communicator& comm) {
    Values summed = small_integers(DType::kF32, comm.rank(), 4099);
    Values scattered = small_integers(DType::kF32, comm.rank(), 4099);
    Values sent = small_integers(DType::kF32, comm.rank(), 100);
    Pending first = comm.start_all_reduce(summed.memory(), DType::kF32, ReduceOp::kSum);
    Pending second = comm.start_reduce_scatter(scattered.memory(), DType::kF32, ReduceOp::kMax);
    Pending third = comm.start_broadcast(sent.memory(), 1);
    comm.barrier();  // queues behind them
    third.wait();
    first.wait();
    second.wait();
    second.wait();  // once is enough
    const Range mine = Chunks(4099, 3)[comm.rank()];
    const bool broadcast = sent.bytes == small_integers(DType::kF32, 1, 100).bytes;
    return check_reduced(summed, {0, 4099}, 3, ReduceOp::kSum) +
           check_reduced(scattered, mine, 3, ReduceOp::kMax) + (broadcast ? "" : "broadcast");
  });
  for (const std::string& problem : problems) CHECK(problem == "");
}

TEST_CASE("nobody leaves a barrier before all have entered") {
  std::atomic<int> entered{0};
  const auto seen = run_ranks(5, [&](Communicator& comm) {
    ++entered;
    comm.barrier();
    return entered.load();
  });
  CHECK(seen == std::vector<int>(5, 5));
}

TEST_CASE("one rank moves nothing") {
  const auto counters = run_ranks(1, [](Communicator& comm) {
    check_everything(comm);
    comm.barrier();
    return comm.counters().messages_sent + comm.counters().messages_received;
  });
  CHECK(counters.front() == 0);
}

TEST_CASE("when one rank is cut off, all fail with kPeer and know the call") {
  const int world_size = GENERATE(2, 3, 5);
  const uint64_t message = GENERATE(0, 1, 2);
  InprocWorld world(world_size);
  const auto make = [&](int rank) -> std::unique_ptr<Transport> {
    auto transport = world.make_transport(rank);
    if (rank != 1) return transport;
    return std::make_unique<FaultyTransport>(std::move(transport),
                                             FaultPlan{.fault = Fault::kCut, .message = message});
  };
  const auto errors = run_ranks_over(make, world_size, [](Communicator& comm) {
    std::vector<float> data(1000);
    return failure_of([&] {
      for (int i = 0; i < 4; ++i) all_reduce_sum(comm, memory_of(data));
    });
  });
  for (const std::string& error : errors) {
    CHECK(contains(error, fmt::format("{}: all-reduce ", to_string(ErrorKind::kPeer))));
  }
}

TEST_CASE("a message that is cut short fails all ranks") {
  InprocWorld world(3);
  const auto make = [&](int rank) -> std::unique_ptr<Transport> {
    if (rank != 1) return world.make_transport(rank);
    return std::make_unique<FaultyTransport>(world.make_transport(rank),
                                             FaultPlan{.fault = Fault::kTruncate, .message = 1});
  };
  const auto errors = run_ranks_over(make, 3, [](Communicator& comm) {
    std::vector<float> data(1000);
    return failure_of([&] {
      for (int i = 0; i < 4; ++i) all_reduce_sum(comm, memory_of(data));
    });
  });
  for (const std::string& error : errors) CHECK(contains(error, "all-reduce "));
}

TEST_CASE("ranks that call different operations of equal size are told both") {
  CommunicatorOptions options;
  options.timeout = std::chrono::milliseconds(100);
  const auto errors = run_ranks(
      2,
      [](Communicator& comm) {
        std::vector<float> data(64);
        const auto op = comm.rank() == 0 ? ReduceOp::kSum : ReduceOp::kMax;
        return failure_of([&] { comm.all_reduce(memory_of(data), DType::kF32, op); });
      },
      options);
  CHECK(contains(errors[0], "all-reduce 0 (64 f32, sum) at rank 0"));
  CHECK(contains(errors[1], "all-reduce 0 (64 f32, max) at rank 1"));
}

TEST_CASE("after a failure nothing more is started, and the cause stays") {
  const auto errors = run_ranks(2, [](Communicator& comm) {
    std::vector<float> data(64);
    comm.abort("the test says so");
    const std::string first = failure_of([&] { all_reduce_sum(comm, memory_of(data)); });
    Pending pending = comm.start_all_reduce(memory_of(data), DType::kF32, ReduceOp::kSum);
    return first + " | " + failure_of([&] { pending.wait(); });
  });
  CHECK(contains(errors[0], "all-reduce 0 (64 f32, sum) at rank 0: "));
  CHECK(contains(errors[0], "| " + std::string(to_string(ErrorKind::kPeer)) +
                                ": all-reduce 1 (64 f32, sum): not started"));
  CHECK(contains(errors[0], "the test says so"));
}

TEST_CASE("a communicator that is destroyed with calls in flight ends them") {
  std::vector<float> data(64);
  const auto device = make_cpu_device();
  InprocWorld world(2);
  const auto peer = world.make_transport(1);  // never takes part
  Pending pending;
  {
    Communicator comm(world.make_transport(0), *device, {});
    pending = comm.start_all_reduce(memory_of(data), DType::kF32, ReduceOp::kSum);
  }
  CHECK(contains(failure_of([&] { pending.wait(); }), "was destroyed before its calls were done"));
}

TEST_CASE("an exception on one rank aborts the others and is the one that is seen") {
  const auto run = [] {
    run_ranks(3, [](Communicator& comm) {
      if (comm.rank() == 2) fail(ErrorKind::kIo, "read tokens: disk is gone");
      comm.barrier();
      return 0;
    });
  };
  CHECK(contains(failure_of(run), "read tokens: disk is gone"));
}

TEST_CASE("a plan says why") {
  const auto plans = run_ranks(2, [](Communicator& comm) {
    return comm.plan({.collective = Collective::kAllReduce, .dtype = DType::kF32, .count = 1024});
  });
  CHECK(plans.front().algorithm->layout_invariant);
  CHECK(contains(plans.front().reason, "predicted"));
}

TEST_CASE("device memory is refused") {
  const auto errors = run_ranks(1, [](Communicator& comm) {
    return failure_of([&] {
      comm.all_reduce({nullptr, 8, MemorySpace::kCuda}, DType::kF32, ReduceOp::kSum);
    });
  });
  CHECK(contains(errors.front(), "device memory is not supported"));
}
