// What a peer that is out of its mind may send: each message is refused, and its sender named.
#include <chrono>
#include <cstring>
#include <string>
#include <vector>

#include "lib/transport/verbs/verbs_channel.h"
#include "tests/transport/mishaps.h"

using namespace gxp;
using namespace std::chrono_literals;

namespace {

// A message in its slot, as it is about to be read.
struct Arrived {
  VerbsHeader& header;
  VerbsGrant& grant;  // if it is one
  size_t bytes;       // that arrived
};
using Forge = void (*)(Arrived&);

// Wraps a change of messages of one kind.
FakeVerbs::Corruption forge(VerbsKind kind, Forge change) {
  return [=](std::span<std::byte> bytes) {
    auto& header = *reinterpret_cast<VerbsHeader*>(bytes.data());
    auto& grant = *reinterpret_cast<VerbsGrant*>(bytes.data() + sizeof header);
    Arrived arrived{header, grant, bytes.size()};
    if (header.kind == kind) change(arrived);
    return arrived.bytes;
  };
}

struct Forgery {
  std::string name;
  VerbsKind kind;
  Forge change;
  std::string words;
  size_t bytes;  // of the messages that are sent
};

constexpr size_t kShort = sizeof(VerbsGrant);
constexpr auto kPayload = VerbsKind::kPayload;
constexpr auto kAnnounce = VerbsKind::kAnnounce;
constexpr auto kGrant = VerbsKind::kGrant;

const std::vector<Forgery> kForgeries = {
    {"magic", kPayload, [](Arrived& it) { ++it.header.magic; }, "an invalid header", kShort},
    {"cut", kPayload, [](Arrived& it) { it.bytes = 10; }, "an invalid header", kShort},
    {"body", kPayload, [](Arrived& it) { ++it.header.body_bytes; }, "an invalid header", kShort},
    {"credits", kPayload, [](Arrived& it) { it.header.credits = 255; }, "more credits than it had",
     kShort},
    {"kind", kPayload, [](Arrived& it) { it.header.kind = VerbsKind(99); },
     "a message of an unknown kind", kShort},
    {"size", kPayload, [](Arrived& it) { ++it.header.bytes; }, "a message of a wrong size", kShort},
    {"no bytes", kPayload,
     [](Arrived& it) {
       it.header.bytes = it.header.body_bytes = 0;
       it.bytes = sizeof(VerbsHeader);
     },
     "a message of a wrong size", kShort},
    {"an announcement of nothing", kAnnounce, [](Arrived& it) { it.header.bytes = 0; },
     "a message of a wrong size", kLong},
    {"2^60 bytes", kAnnounce, [](Arrived& it) { it.header.bytes = uint64_t{1} << 60; },
     "its receiver expects 300000", kLong},
    {"half a grant", kGrant,
     [](Arrived& it) {
       it.header.body_bytes = 8;
       it.bytes = sizeof(VerbsHeader) + 8;
     },
     "half a grant", kLong},
    {"a grant for another", kGrant,
     [](Arrived& it) {
       it.header.answers = 1;
       it.header.number += 1000;
     },
     "an unrequested grant", kLong},
    {"many early grants", kPayload,
     [](Arrived& it) {
       it.header.kind = kGrant;
       it.header.answers = 0;
       it.header.tag += 1000;
     },
     "an unrequested grant", kShort},
    {"a grant of nothing", kGrant, [](Arrived& it) { it.grant.bytes = 0; },
     "a grant beyond its message", kLong},
    {"a grant of too much", kGrant, [](Arrived& it) { ++it.grant.bytes; },
     "a grant beyond its message", kLong},
    {"a grant with a hole before it", kGrant,
     [](Arrived& it) {
       ++it.grant.offset;
       --it.grant.bytes;
     },
     "a grant beyond its message", kLong},
    {"a grant that ends beyond 2^64", kGrant, [](Arrived& it) { it.grant.bytes = uint64_t{} - 1; },
     "a grant beyond its message", kLong},
};

std::string both_errors(size_t bytes) {
  const auto start = Deadline::Clock::now();
  const auto errors = run_reporting("verbs", 2, [&](Transport& transport, Store&) {
    exchange(transport, bytes, 12, Deadline::after(5s));
  });
  CHECK(Deadline::Clock::now() - start < 5s);
  for (const std::string& error : errors) CHECK(!error.empty());
  return errors[0] + " | " + errors[1];
}

}  // namespace

TEST_CASE("each message that no rank sends is refused, and its sender named", "[verbs]") {
  const Mishaps fake;
  if (!fake) return;
  const Forgery forgery = GENERATE(from_range(kForgeries));
  CAPTURE(forgery.name);
  fake->corrupt_sends(forge(forgery.kind, forgery.change));
  const std::string errors = both_errors(forgery.bytes);
  CHECK(contains(errors, forgery.words));
  CHECK(contains(errors, "receive from rank "));
  CHECK(!contains(errors, "not kPeer"));
}

TEST_CASE("data for a place that was not granted are refused, and their sender named", "[verbs]") {
  const Mishaps fake;
  if (!fake) return;
  fake->corrupt_numbers(GENERATE(0x8u, 0x80u, 0x100u, 0x80000000u));
  CHECK(contains(both_errors(kLong), "it sent data without a grant"));
}

TEST_CASE("a place that is granted twice is written once", "[verbs]") {
  const Mishaps fake;
  if (!fake) return;
  // All grants for the tiles of a message are for its first tile.
  fake->corrupt_sends(forge(kGrant, [](Arrived& it) { it.grant.offset = 0; }));
  const auto errors = run_reporting("verbs", 2, [&](Transport& transport, Store&) {
    std::vector<std::byte> data(3 * kLong);
    const Combiner nothing{[](const void*, std::byte*, const std::byte*, size_t) {}, nullptr, 1};
    const Ticket ticket = transport.rank() == 0
                              ? transport.send(1, 1, memory_of(std::as_const(data)))
                              : transport.recv_and_combine(0, 1, memory_of(data), nothing);
    transport.wait(ticket, Deadline::after(5s));
  });
  CHECK(contains(errors[0], "receive from rank 1 by RDMA: it sent a grant beyond its message"));
}
