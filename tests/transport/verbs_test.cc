// The transport verbs over the fake of libibverbs, whose network misbehaves on demand.
#include <infiniband/verbs.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <string>
#include <thread>
#include <vector>

#include "lib/transport/verbs/verbs.h"
#include "lib/transport/verbs/verbs_budget.h"
#include "lib/transport/verbs/verbs_context.h"
#include "lib/transport/verbs/verbs_find.h"
#include "tests/transport/mishaps.h"

using namespace gxp;
using namespace std::chrono_literals;

TEST_CASE("requests of several queue pairs may be carried out in any order", "[verbs]") {
  const Mishaps fake;
  if (!fake) return;
  const auto world = GENERATE("verbs", "verbs rails");
  const size_t bytes = GENERATE(size_t{100}, size_t{9000}, kLong, size_t{3000001});
  CAPTURE(world, bytes);
  fake->shuffle(true);
  std::atomic<int> right = 0;
  const auto errors =
      run_over(world, 3, [&](Transport& transport) { right += exchange(transport, bytes, 7); });
  CHECK(errors == none(3));
  CHECK(right == 3);
  CHECK(fake->not_ready() == 0);
}

TEST_CASE("data are cut over all ports and connections", "[verbs]") {
  const Mishaps fake;
  if (!fake) return;
  run_over("verbs rails", 2, [&](Transport& transport) { exchange(transport, 1 << 20, 2); });
  CHECK(fake->bytes_written(0) == 2 << 20);
  CHECK(fake->bytes_written(1) == 2 << 20);
}

TEST_CASE("no receiver is ever found not ready, however much is sent before it is asked for",
          "[verbs]") {
  const Mishaps fake;
  if (!fake) return;
  constexpr int kMany = 20 * kMessageCredits;
  const size_t bytes = GENERATE(size_t{10}, size_t{20000});
  const auto errors = run_over("verbs", 2, [&](Transport& transport) {
    std::vector<std::byte> data(bytes);
    std::vector<std::vector<std::byte>> got(kMany, data);
    std::vector<Ticket> tickets;
    for (int i = 0; i < kMany; ++i)
      tickets.push_back(transport.rank() == 0
                            ? transport.send(1, Tag(i), memory_of(std::as_const(data)))
                            : transport.recv(0, Tag(kMany - 1 - i), memory_of(got[size_t(i)])));
    for (const Ticket ticket : tickets) transport.wait(ticket, soon());
  });
  CHECK(errors == none(2));
  CHECK(fake->not_ready() == 0);
}

TEST_CASE("long messages are received in the reverse order of waits for their sends", "[verbs]") {
  const Mishaps fake;
  if (!fake) return;
  constexpr int kMany = 3 * int(kGrants);
  const auto errors = run_over("verbs", 2, [&](Transport& transport) {
    std::vector<std::vector<std::byte>> got(kMany, std::vector<std::byte>(kLong));
    std::vector<Ticket> tickets;
    for (int i = 0; i < kMany; ++i) {
      if (transport.rank() == 0) {
        const auto data = payload(kLong, 0, 1, i);
        transport.wait(transport.send(1, Tag(i), memory_of(data)), soon());
      } else {
        tickets.push_back(transport.recv(0, Tag(kMany - 1 - i), memory_of(got[size_t(i)])));
      }
    }
    for (const Ticket ticket : tickets) transport.wait(ticket, soon());
  });
  CHECK(errors == none(2));
}

TEST_CASE("each way in which a request can fail is told with port, peer and status", "[verbs]") {
  const Mishaps fake;
  if (!fake) return;
  const int status = GENERATE(range(int(IBV_WC_LOC_LEN_ERR), int(IBV_WC_GENERAL_ERR) + 1));
  const int after = GENERATE(0, 5);
  CAPTURE(status, after);
  const auto start = Deadline::Clock::now();
  World world("verbs", 2);
  const auto errors = run_all(2, [&](int rank) {
    const auto store = world.join_store(rank);
    const auto transport = world.join(*store);
    store->barrier("joined", soon());
    if (rank == 0) fake->fail_request(after, status);
    store->barrier("about to fail", soon());
    for (int i = 0; i < 10; ++i) exchange(*transport, kLong, 1);
  });
  const std::string both = errors[0] + " | " + errors[1];
  CHECK((contains(both, "rank 0 ") || contains(both, "rank 1 ")));
  CHECK(contains(both, "by RDMA from fake"));
  // The other rank, whose next request finds the connection broken, may be the first to tell.
  CHECK((contains(both, fmt::format("(status {}, vendor 0x81); ", status)) ||
         contains(both, fmt::format("(status {}, ", int(IBV_WC_RETRY_EXC_ERR)))));
  for (const std::string& error : errors) CHECK(!error.empty());
  CHECK(Deadline::Clock::now() - start < kSoon);
}

TEST_CASE("memory that the transport is to keep stays registered between messages", "[verbs]") {
  const Mishaps fake;
  if (!fake) return;
  std::atomic<int> right = 0;
  const auto errors = run_over("verbs", 2, [&](Transport& transport) {
    const auto barrier = [&] { exchange(transport, 1, 1); };
    std::vector<std::byte> data(4 * kLong);
    const Memory all = memory_of(data);
    const int peer = 1 - transport.rank();
    barrier();
    const size_t before = fake->registered_regions();
    barrier();
    transport.keep(all);
    std::vector<Ticket> tickets;
    for (size_t i = 0; i < 2; ++i) {
      tickets.push_back(transport.send(peer, i, all.slice(i * kLong, kLong)));
      tickets.push_back(transport.recv(peer, i, all.slice((2 + i) * kLong, kLong)));
    }
    for (const Ticket ticket : tickets) transport.wait(ticket, soon());
    barrier();
    right += fake->registered_regions() == before + 2;  // one for each rank
    barrier();
    transport.forget(all);
  });
  CHECK(errors == none(2));
  CHECK(right == 2);
}

TEST_CASE("a receiver that lost its receives is told of by the sender", "[verbs]") {
  const Mishaps fake;
  if (!fake) return;
  const auto errors = run_reporting("verbs", 2, [&](Transport& transport, Store& store) {
    store.barrier("joined", soon());
    if (transport.rank() == 0) fake->lose_receives();
    store.barrier("lost", soon());
    std::vector<std::byte> data(8);
    transport.wait(transport.rank() == 0 ? transport.send(1, 1, memory_of(std::as_const(data)))
                                         : transport.recv(0, 1, memory_of(data)),
                   soon());
    transport.wait(transport.recv(1 - transport.rank(), 2, memory_of(data)), soon());
  });
  for (const std::string& error : errors) {
    CHECK(contains(error, "rank 1 takes nothing by RDMA from fake0"));
    CHECK(contains(error, "it has no receive posted"));
  }
  CHECK(fake->not_ready() > 0);
}

// The survivor has sends under way: of announcements, grants, data.
TEST_CASE("a host that loses its power is named, whatever it has done before", "[verbs]") {
  const Mishaps fake;
  if (!fake) return;
  const int requests = GENERATE(0, 2, 5, 13);
  CAPTURE(requests);
  const auto start = Deadline::Clock::now();
  fake->vanish(1, requests);
  const auto errors = run_over("verbs", 2, [&](Transport& transport) {
    exchange(transport, kLong, 8, Deadline::after(5s));
  });
  CAPTURE(errors[0], errors[1]);
  CHECK(contains(errors[0], "rank 1 cannot be reached by RDMA from fake0 port 1"));
  CHECK(contains(errors[1], "rank 0: rank 1 cannot be reached by RDMA from fake0 port 1"));
  CHECK(Deadline::Clock::now() - start < 5s);
}

TEST_CASE("a network that is cut is told by whoever sends", "[verbs]") {
  const Mishaps fake;
  if (!fake) return;
  const size_t bytes = GENERATE(size_t{8}, kLong);
  const auto errors = run_over("verbs rails", 2, [&](Transport& transport) {
    exchange(transport, bytes, 1);
    fake->cut(IBV_WC_RETRY_EXC_ERR);
    exchange(transport, bytes, 1);
  });
  CHECK(contains(errors[0] + errors[1], "cannot be reached by RDMA from fake"));
  CHECK(contains(errors[0] + errors[1], "transport retry counter exceeded"));
}

TEST_CASE("a port that is down for a moment only delays", "[verbs]") {
  const Mishaps fake;
  if (!fake) return;
  const auto errors = run_over("verbs", 2, [&](Transport& transport) {
    exchange(transport, kLong, 1);
    std::jthread cable;
    if (transport.rank() == 0) {
      fake->set_port(0, false);
      cable = std::jthread([&] {
        std::this_thread::sleep_for(50ms);
        fake->set_port(0, true);
      });
    }
    exchange(transport, kLong, 3);
  });
  CHECK(errors == none(2));
}

TEST_CASE("data may be written in any order, slots in strict order", "[verbs]") {
  const Mishaps fake;
  if (!fake) return;
  std::atomic<int> right = 0;
  run_over("verbs", 2, [&](Transport& transport) {
    const std::vector<std::byte> source(kLong);
    std::vector<std::byte> data(kLong);
    exchange(transport, 1, 1);
    right += fake->registered_regions() == 2 && fake->relaxed_regions() == 0;  // slots
    exchange(transport, 1, 1);
    const Ticket got = transport.recv(1 - transport.rank(), 7, memory_of(data));
    exchange(transport, 1, 1);
    right += fake->registered_regions() == 4 && fake->relaxed_regions() == 2;
    exchange(transport, 1, 1);
    transport.wait(transport.send(1 - transport.rank(), 7, memory_of(source)), soon());
    transport.wait(got, soon());
  });
  CHECK(right == 4);
}

TEST_CASE("ranks use the ports of their places, and the choice says why", "[verbs]") {
  const Mishaps fake;
  if (!fake) return;
  World world("verbs", 2);
  std::array<std::string, 2> reasons;
  run_all(2, [&](int rank) {
    const auto store = world.join_store(rank);
    TransportContext context = world.context(*store);
    // Crosswise: without places each would have the port of its own number.
    change_verbs(context).place = [rank] {
      GpuDirectFacts facts{.driver_is_open = true, .linux_takes_dma_buf = true};
      return VerbsPlace{.ports = {fmt::format("fake{}:1", 1 - rank)},
                        .why = fmt::format("nearest to GPU{}: PIX", rank),
                        .gpu_direct = facts};
    };
    context.hosts = {context.host, context.host};
    survey_verbs(context);
    reasons[size_t(rank)] = verbs_reaches(context, rank, 1 - rank).reason;
    store->close();
  });
  CHECK(reasons[0] ==
        "RoCE on fake1 port 1 (connections to each peer: 1, ports: 1), nearest to GPU0: PIX; "
        "GPUDirect RDMA on: by DMA-BUF: open driver, Linux 5.12 or later");
  CHECK(contains(reasons[1], "RoCE on fake0 port 1 "));
}

TEST_CASE("InfiniBand ports join ranks too", "[verbs]") {
  const Mishaps fake;
  if (!fake) return;
  fake->set_infiniband(true);
  std::atomic<int> right = 0;
  run_over("verbs rails", 2, [&](Transport& transport) { right += exchange(transport, kLong, 2); });
  CHECK(right == 2);
}

TEST_CASE("memory that cannot be registered is an error with the limit's name", "[verbs]") {
  const Mishaps fake;
  if (!fake) return;
  const auto errors = run_over("verbs", 2, [&](Transport& transport) {
    if (transport.rank() == 0) fake->set_lockable_bytes(0);
    exchange(transport, kLong, 1);
  });
  CHECK(contains(errors[0] + errors[1], "register 293 KiB with fake"));
  CHECK(contains(errors[0] + errors[1], "ulimit -l"));
}
