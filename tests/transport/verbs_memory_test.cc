// User memory under RDMA: what becomes of it between operations, under fork() and after failures.
// Over the fake, or over the system's library and devices.
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <latch>
#include <string>
#include <vector>

#include "tests/transport/mishaps.h"

using namespace gxp;
using namespace std::chrono_literals;

namespace {

bool has_verbs() { return is_here({"verbs", "verbs"}); }

// Mapped pages of a rank's own.
class Pages {
 public:
  explicit Pages(size_t bytes) : bytes_(bytes), data_(map(nullptr)) {}
  ~Pages() { munmap(data_, bytes_); }
  Pages(const Pages&) = delete;
  Pages& operator=(const Pages&) = delete;
  [[nodiscard]] Memory memory() const { return {data_, bytes_, MemorySpace::kHost}; }
  // Other pages at the same addresses.
  void renew() { map(data_); }

 private:
  std::byte* map(void* at) const {
    const int fixed = at == nullptr ? 0 : MAP_FIXED;
    return static_cast<std::byte*>(
        mmap(at, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | fixed, -1, 0));
  }
  size_t bytes_;
  std::byte* data_;
};

void fill(Memory memory, int from, int to, int message) {
  const auto data = payload(memory.bytes, from, to, message);
  std::memcpy(memory.data, data.data(), data.size());
}
bool holds(Memory memory, int from, int to, int message) {
  const auto data = payload(memory.bytes, from, to, message);
  return std::memcmp(memory.data, data.data(), data.size()) == 0;
}

// Both ranks send `out` and receive `in` with this number; whether what came was right.
bool swap(Transport& transport, Memory out, Memory in, int message) {
  const int peer = 1 - transport.rank();
  fill(out, transport.rank(), peer, message);
  const Ticket receive = transport.recv(peer, Tag(message), in);
  transport.wait(transport.send(peer, Tag(message), out), soon());
  transport.wait(receive, soon());
  return holds(in, peer, transport.rank(), message);
}

// KiB of this process that the kernel has pinned for devices; 0 with the fake.
size_t pinned_kib() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("VmPin:")) return size_t(std::atol(line.c_str() + 6));
  }
  return 0;
}
size_t registered_now() {
  return fake_verbs() != nullptr ? fake_verbs()->registered_regions() : pinned_kib();
}

// A child that writes to its copies of the memory; whether it could.
bool write_in_child(std::initializer_list<Memory> all) {
  const pid_t child = fork();
  if (child == 0) {
    for (const Memory& memory : all) std::memset(memory.data, 0x5a, memory.bytes);
    _exit(0);
  }
  int status = -1;
  return waitpid(child, &status, 0) == child && status == 0;
}

// Sends and receives buffers that have never been before; whether what came was right. Marked, not
// filled: the time is for registering.
bool swap_new_buffers(Transport& transport, int number) {
  const Pages out(9000);
  const Pages in(9000);
  const int peer = 1 - transport.rank();
  std::memcpy(out.memory().data + 8900, &number, sizeof number);
  const Ticket receive = transport.recv(peer, 1, in.memory());
  transport.wait(transport.send(peer, 1, out.memory()), soon());
  transport.wait(receive, soon());
  return std::memcmp(in.memory().data + 8900, &number, sizeof number) == 0;
}

// Rank 0's value on both.
bool agree(Transport& transport, bool value) {
  std::vector<std::byte> word(1, std::byte(value));
  transport.wait(transport.rank() == 0 ? transport.send(1, 2, memory_of(std::as_const(word)))
                                       : transport.recv(0, 2, memory_of(word)),
                 soon());
  return word[0] != std::byte{};
}

}  // namespace

TEST_CASE("memory that a child writes to while it is sent and received stays right",
          "[verbs_memory]") {
  if (!has_verbs()) return;
  const bool kept = GENERATE(false, true);
  CAPTURE(kept);
  std::atomic<int> right = 0;
  std::atomic<int> children = 0;
  const auto errors = run_over("verbs", 2, [&](Transport& transport) {
    const Pages out(kLong);
    const Pages in(kLong);
    if (kept) transport.keep(out.memory());
    if (kept) transport.keep(in.memory());
    const int peer = 1 - transport.rank();
    for (int message = 0; message < 3; ++message) {
      fill(out.memory(), transport.rank(), peer, message);
      const Ticket receive = transport.recv(peer, Tag(message), in.memory());
      const Ticket send = transport.send(peer, Tag(message), out.memory());
      if (transport.rank() == 0) children += write_in_child({out.memory(), in.memory()});
      transport.wait(send, soon());
      transport.wait(receive, soon());
      right += holds(in.memory(), peer, transport.rank(), message);
    }
    transport.forget(out.memory());
    transport.forget(in.memory());
  });
  CHECK(errors == none(2));
  CHECK(right == 6);
  CHECK(children == 3);
}

TEST_CASE("memory may be given back, mapped anew and freed between operations", "[verbs_memory]") {
  if (!has_verbs()) return;
  const std::string way = GENERATE("madvise", "the same address", "malloc");
  CAPTURE(way);
  constexpr int kTimes = 20;
  std::atomic<int> right = 0;
  const auto errors = run_over("verbs", 2, [&](Transport& transport) {
    Pages out(kLong);
    Pages in(kLong);
    for (int message = 0; message < kTimes; ++message) {
      if (way == "malloc") {
        std::vector<std::byte> first(kLong);
        std::vector<std::byte> second(kLong);
        right += swap(transport, memory_of(first), memory_of(second), message);
        continue;
      }
      right += swap(transport, out.memory(), in.memory(), message);
      for (Pages* pages : {&out, &in}) {
        const Memory memory = pages->memory();
        if (way == "madvise") madvise(memory.data, memory.bytes, MADV_DONTNEED);
        if (way == "the same address") pages->renew();
      }
    }
  });
  CHECK(errors == none(2));
  CHECK(right == 2 * kTimes);
}

// In the machine of tests/rdma-vm the time ends it; it says how far it came.
TEST_CASE("a hundred thousand new buffers are sent and nothing stays registered", "[.long][soak]") {
  if (!has_verbs()) return;
  constexpr int kEach = 50000;
  const Deadline end = Deadline::after(30s);
  std::atomic<int> right = 0;
  std::atomic<int> sent = 0;
  std::array<std::atomic<size_t>, 2> registered{};  // early and last
  const auto errors = run_over("verbs", 2, [&](Transport& transport) {
    for (int i = 1; i <= kEach; ++i) {
      right += swap_new_buffers(transport, i);
      ++sent;
      if (i % 100 != 0) continue;
      exchange(transport, 1, 1);  // here nobody sends a long message
      if (transport.rank() == 0) registered[i > 100] = registered_now();
      if (!agree(transport, !end.expired())) break;
    }
  });
  fmt::print(stderr, "{} buffers were sent, {} registrations (or KiB pinned) were left\n",
             sent.load(), registered[1].load());
  CHECK(errors == none(2));
  CHECK(right == sent);
  CHECK(sent >= 1000);
  CHECK(registered[1] <= registered[0]);
}

TEST_CASE("memory is the caller's again once a wait has failed: nothing is written to it",
          "[verbs_memory]") {
  if (!has_verbs()) return;
  std::atomic<bool> untouched = false;
  std::latch given_up(1);
  std::latch sent(1);
  World world("verbs", 2);
  run_all(2, [&](int rank) {
    const auto store = world.join_store(rank);
    const auto transport = world.join(*store);
    std::vector<std::byte> data(kLong, std::byte{7});
    const auto act = [&](auto start, Deadline::Duration limit) {
      try {
        transport->wait(start(), Deadline::after(limit));
      } catch (const Error&) {
      }
    };
    if (rank == 0) {
      act([&] { return transport->recv(1, 1, memory_of(data)); }, 50ms);
      given_up.count_down();
      sent.wait();
      untouched = data == std::vector<std::byte>(kLong, std::byte{7});
    } else {
      given_up.wait();
      std::ranges::fill(data, std::byte{1});
      act([&] { return transport->send(0, 1, memory_of(std::as_const(data))); }, 200ms);
      sent.count_down();
    }
  });
  CHECK(untouched);
}

TEST_CASE("memory is the caller's again once a wait has failed: nothing of it is received",
          "[verbs]") {
  const Mishaps fake;
  if (!fake) return;
  std::atomic<int> received = 0;
  World world("verbs", 2);
  run_all(2, [&](int rank) {
    const auto store = world.join_store(rank);
    const auto transport = world.join(*store);
    auto data = payload(kLong, 0, 1);
    try {
      exchange(*transport, 8, 1);
      if (rank == 0) fake->set_port(0, false);  // holds what rank 0 sends
      store->barrier("held", soon());
      const Ticket ticket = rank == 0 ? transport->send(1, 1, memory_of(std::as_const(data)))
                                      : transport->recv(0, 1, memory_of(data));
      transport->wait(ticket, Deadline::after(rank == 0 ? 50ms : 500ms));
      ++received;
    } catch (const Error&) {
    }
    if (rank == 0) {
      std::ranges::fill(data, std::byte{});
      fake->set_port(0, true);
    }
    store->barrier("end", soon());
    store->close();
  });
  CHECK(received == 0);
}

TEST_CASE("a transport that ends with sends under way ends them", "[verbs]") {
  const Mishaps fake;
  if (!fake) return;
  fake->shuffle(true);
  const auto errors = run_over("verbs rails", 2, [&](Transport& transport) {
    static const auto data = payload(8 * kLong, 0, 1);
    std::vector<std::byte> into(data.size());
    exchange(transport, 1, 1);
    if (transport.rank() == 0) {
      static_cast<void>(transport.send(1, 1, memory_of(data)));
      exchange(transport, 1, 1);
    } else {
      const Ticket ticket = transport.recv(0, 1, memory_of(into));
      exchange(transport, 1, 1);
      transport.wait(ticket, soon());
    }
  });
  CHECK(errors == none(2));
}
