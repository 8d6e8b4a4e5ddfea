#include "lib/collective/communicator.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <string>

#include "lib/base/error.h"
#include "lib/collective/algorithm/algorithm.h"
#include "tests/catch.h"
#include "tests/collective/error_of.h"
#include "tests/collective/run_ranks_of.h"
#include "tests/transport/faulty.h"

using namespace gxp;

namespace {

void all_reduce_sum(Communicator& comm, Memory data) {
  comm.all_reduce(data, DType::kF32, ReduceOp::kSum);
}

}  // namespace

TEST_CASE("started calls run together and may be waited for in any order") {
  const auto right = run_ranks(3, [](Communicator& comm) {
    std::vector<int> summed(4099, comm.rank() + 1);
    std::vector<int> scattered = summed;
    std::vector<int> sent(100, comm.rank());
    Pending first = comm.start_all_reduce(memory_of(summed), DType::kI32, ReduceOp::kSum);
    Pending second = comm.start_reduce_scatter(memory_of(scattered), DType::kI32, ReduceOp::kMax);
    Pending third = comm.start_broadcast(memory_of(sent), 1);
    comm.barrier();  // queues behind them
    third.wait();
    first.wait();
    second.wait();
    second.wait();  // once is enough
    const Range mine = Chunks(4099, 3)[comm.rank()];
    return int{summed == std::vector<int>(4099, 6) && scattered[mine.begin] == 3 &&
               scattered[mine.end() - 1] == 3 && sent == std::vector<int>(100, 1)};
  });
  CHECK(right == std::vector<int>(3, 1));
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
    std::vector<float> data(7);
    all_reduce_sum(comm, memory_of(data));
    comm.broadcast(memory_of(data), 0);
    comm.all_gather(memory_of(data), DType::kF32);
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
    return error_of([&] {
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
    return error_of([&] {
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
        return error_of([&] { comm.all_reduce(memory_of(data), DType::kF32, op); });
      },
      options);
  CHECK(contains(errors[0], "all-reduce 0 (64 f32, sum) at rank 0"));
  CHECK(contains(errors[1], "all-reduce 0 (64 f32, max) at rank 1"));
}

TEST_CASE("after a failure nothing more is started, and the cause stays") {
  const auto errors = run_ranks(2, [](Communicator& comm) {
    std::vector<float> data(64);
    comm.abort("the test says so");
    const std::string first = error_of([&] { all_reduce_sum(comm, memory_of(data)); });
    Pending pending = comm.start_all_reduce(memory_of(data), DType::kF32, ReduceOp::kSum);
    return first + " | " + error_of([&] { pending.wait(); });
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
  CHECK(contains(error_of([&] { pending.wait(); }), "was destroyed before its calls were done"));
}

TEST_CASE("an exception on one rank aborts the others and is the one that is seen") {
  const auto run = [] {
    run_ranks(3, [](Communicator& comm) {
      if (comm.rank() == 2) fail(ErrorKind::kIo, "read tokens: disk is gone");
      comm.barrier();
      return 0;
    });
  };
  CHECK(contains(error_of(run), "read tokens: disk is gone"));
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
    return error_of([&] {
      comm.all_reduce({nullptr, 8, MemorySpace::kCuda}, DType::kF32, ReduceOp::kSum);
    });
  });
  CHECK(contains(errors.front(), "cannot access the ranks"));
}

TEST_CASE("a message in device memory is refused where the transport does not reach it") {
  const auto errors = run_ranks(2, [](Communicator& comm) {
    const int peer = 1 - comm.rank();
    return error_of([&] {
             comm.send(peer, {nullptr, 8, MemorySpace::kCuda});
           }) +
           error_of([&] {
             comm.recv(peer, {nullptr, 8, MemorySpace::kCuda});
           });
  });
  CHECK(contains(errors[0], "send to rank 1: device memory is not supported by engine 'native'"));
  CHECK(contains(errors[1], "receive from rank 0: device memory is not supported"));
}

TEST_CASE("groups of one split work next to each other") {
  const std::string transport = GENERATE(from_range(rows_and({"shm+tcp"})));
  CAPTURE(transport);
  const auto act = [](Communicator& comm) {
    const auto neighbours = comm.split(comm.rank() / 2, comm.rank());
    const auto across = comm.split(comm.rank() % 2, comm.rank());
    int wrong = 0;
    for (int call = 0; call < 200; ++call) {
      std::vector<int> data(size_t(1) << call % 14, comm.rank());
      Communicator& group = call % 3 == 0 ? *across : *neighbours;
      const int want = call % 3 == 0 ? 2 * (comm.rank() % 2) + 2 : 4 * (comm.rank() / 2) + 1;
      group.all_reduce(memory_of(data), DType::kI32, ReduceOp::kSum);
      wrong += int(std::count(data.begin(), data.end(), want) != std::ssize(data));
    }
    comm.barrier();  // nobody hangs up on a rank that still works
    return wrong;
  };
  CHECK(run_ranks_of(transport, 4, act, {}) == std::vector<int>(4, 0));
}
