// recv_and_combine, over every transport.
#include <cstring>
#include <string>
#include <vector>

#include "lib/transport/pending_message.h"
#include "tests/catch.h"
#include "tests/transport/worlds.h"

using namespace gxp;

namespace {

template <class T>
void add(const void* context, std::byte* target, const std::byte* arrived, size_t bytes) {
  bool& torn = *static_cast<bool*>(const_cast<void*>(context));
  torn |= bytes % sizeof(T) != 0 || reinterpret_cast<uintptr_t>(arrived) % sizeof(T) != 0;
  for (size_t at = 0; at + sizeof(T) <= bytes; at += sizeof(T)) {
    T sum;
    T term;
    std::memcpy(&sum, target + at, sizeof(T));
    std::memcpy(&term, arrived + at, sizeof(T));
    sum = T(sum + term);
    std::memcpy(target + at, &sum, sizeof(T));
  }
}

template <class T>
std::vector<T> numbers(size_t count, int first) {
  std::vector<T> values(count);
  for (size_t i = 0; i < count; ++i) values[i] = T((i + size_t(first)) % 100);
  return values;
}

template <class T>
std::vector<T> sum_of(std::vector<T> a, const std::vector<T>& b) {
  for (size_t i = 0; i < a.size(); ++i) a[i] = T(a[i] + b[i]);
  return a;
}

// Rank 0 sends `count` elements behind three bytes that shift them; rank 1 adds them to its own.
template <class T>
bool adds_up(const std::string& name, size_t count) {
  const std::vector<T> sent = numbers<T>(count, 3);
  std::vector<T> target = numbers<T>(count, 50);
  bool torn = false;
  const auto errors = run_over(name, 2, [&](Transport& transport) {
    std::vector<std::byte> shift(3);
    if (transport.rank() == 0) {
      const Ticket first = transport.send(1, 7, memory_of(std::as_const(shift)));
      const Ticket second = transport.send(1, 8, memory_of(sent));
      transport.wait(first, soon());
      transport.wait(second, soon());
    } else {
      const Ticket first = transport.recv(0, 7, memory_of(shift));
      const Ticket second =
          transport.recv_and_combine(0, 8, memory_of(target), {add<T>, &torn, sizeof(T)});
      transport.wait(second, soon());
      transport.wait(first, soon());
    }
  });
  return errors == std::vector<std::string>(2) && !torn &&
         target == sum_of(sent, numbers<T>(count, 50));
}

}  // namespace

TEST_CASE("elements are combined whole, wherever the transport cuts the message", "[combine]") {
  const auto name = GENERATE(from_range(worlds_of(2)));
  const size_t count = GENERATE(1, 2, 5, 501, 4099, 16377, 300007);
  CAPTURE(name, count);
  CHECK(adds_up<uint8_t>(name, count));
  CHECK(adds_up<uint16_t>(name, count));
  CHECK(adds_up<float>(name, count));
  CHECK(adds_up<double>(name, count));
}

TEST_CASE("a message that came before its receive is combined all the same", "[combine]") {
  const auto name = GENERATE(from_range(worlds_of(2)));
  const size_t count = GENERATE(3, 400001);
  CAPTURE(name, count);
  const auto sent = numbers<float>(count, 1);
  auto target = numbers<float>(count, 9);
  bool torn = false;
  const auto errors = run_over(name, 2, [&](Transport& transport) {
    std::byte last{};
    const Memory end{&last, 1, MemorySpace::kHost};
    if (transport.rank() == 0) {
      const Ticket first = transport.send(1, 1, memory_of(sent));
      transport.wait(transport.send(1, 2, end), soon());
      transport.wait(first, soon());
      return;
    }
    transport.wait(transport.recv(0, 2, end), soon());
    const Combiner adder{add<float>, &torn, sizeof(float)};
    transport.wait(transport.recv_and_combine(0, 1, memory_of(target), adder), soon());
  });
  CHECK(errors == std::vector<std::string>(2));
  CHECK(target == sum_of(sent, numbers<float>(count, 9)));
  CHECK_FALSE(torn);
}

TEST_CASE("stored and combined messages of one tag keep their order", "[combine]") {
  const auto name = GENERATE(from_range(worlds_of(2)));
  CAPTURE(name);
  constexpr size_t kCount = 70001;
  std::vector<std::vector<float>> got;
  for (int i = 0; i < 6; ++i) got.push_back(numbers<float>(kCount, 20 + i));
  bool torn = false;
  const auto errors = run_over(name, 2, [&](Transport& transport) {
    std::vector<std::vector<float>> sent;
    for (int i = 0; i < 6; ++i) sent.push_back(numbers<float>(kCount, i));
    std::vector<Ticket> tickets;
    for (size_t i = 0; i < 6; ++i) {
      const Combiner adder{add<float>, &torn, sizeof(float)};
      if (transport.rank() == 0) {
        tickets.push_back(transport.send(1, 1, memory_of(std::as_const(sent[i]))));
      } else if (i % 3 == 1) {
        tickets.push_back(transport.recv(0, 1, memory_of(got[i])));
      } else {
        tickets.push_back(transport.recv_and_combine(0, 1, memory_of(got[i]), adder));
      }
    }
    for (size_t i = 6; i-- > 0;) transport.wait(tickets[i], soon());
  });
  CHECK(errors == std::vector<std::string>(2));
  for (int i = 0; i < 6; ++i) {
    const auto sent = numbers<float>(kCount, i);
    CHECK(got[size_t(i)] == (i % 3 == 1 ? sent : sum_of(sent, numbers<float>(kCount, 20 + i))));
  }
}

TEST_CASE("all ranks combine from all others at once", "[combine]") {
  constexpr int kRanks = 4;
  const auto name = GENERATE(from_range(worlds_of(kRanks)));
  CAPTURE(name);
  constexpr size_t kCount = 100003;
  std::vector<std::vector<float>> sums(kRanks);
  const auto errors = run_over(name, kRanks, [&](Transport& transport) {
    const int me = transport.rank();
    const auto mine = numbers<float>(kCount, me);
    auto& sum = sums[size_t(me)] = mine;
    bool torn = false;
    std::vector<Ticket> tickets;
    for (int peer = 0; peer < kRanks; ++peer) {
      if (peer == me) continue;
      tickets.push_back(transport.send(peer, 4, memory_of(mine)));
      tickets.push_back(
          transport.recv_and_combine(peer, 4, memory_of(sum), {add<float>, &torn, 4}));
    }
    for (const Ticket ticket : tickets) transport.wait(ticket, soon());
  });
  CHECK(errors == std::vector<std::string>(kRanks));
  auto want = numbers<float>(kCount, 0);
  for (int rank = 1; rank < kRanks; ++rank) want = sum_of(want, numbers<float>(kCount, rank));
  for (const auto& sum : sums) CHECK(sum == want);
}

TEST_CASE("deliver() puts elements together from any cuts", "[combine]") {
  const size_t piece = GENERATE(1, 3, 4, 7, 13, 4095);
  const auto sent = numbers<double>(2000, 5);
  auto target = numbers<double>(2000, 1);
  bool torn = false;
  PendingMessage receive =
      make_combine(0, 0, memory_of(target), {add<double>, &torn, sizeof(double)});
  const ConstMemory bytes = memory_of(sent);
  for (size_t at = 0; at < bytes.bytes; at += piece) {
    deliver(receive, bytes.slice(at, std::min(piece, bytes.bytes - at)));
  }
  CHECK(receive.moved == bytes.bytes);
  CHECK(target == sum_of(sent, numbers<double>(2000, 1)));
  CHECK_FALSE(torn);
}
