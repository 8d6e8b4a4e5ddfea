// Rank 1 talks to rank 0's store through somebody who does not know the secret.
#include <string>

#include "lib/net/socket/authenticate.h"
#include "tests/catch.h"
#include "tests/error_of.h"
#include "tests/net/store_job.h"
#include "tests/relay.h"

using namespace gxp;

namespace {

constexpr uint64_t kHandshake = Handshake::kHelloBytes + Handshake::kProofBytes;
constexpr uint64_t kFrame = kRecordHeaderBytes + 15;  // one without key and value

struct RelayOutcome {
  std::string rank0;  // its verdict
  std::string rank1;  // its error
};

// Rank 1 joins, says something and waits for a key that nobody sets.
RelayOutcome run(const Meddle& meddle, Deadline patience = soon()) {
  const Job job(2);
  const auto rank0 = job.join(0);
  const Relay relay(job.endpoint, meddle);
  RelayOutcome outcome;
  outcome.rank1 = error_of([&] {
                    Store rank1(relay.endpoint(), 1, 2, job.secret, soon());
                    rank1.set("greeting", "hello");
                    if (rank1.get("greeting", soon()) != "hello") fail(ErrorKind::kPeer, "wrong");
                    rank1.set("more", "words");
                    rank1.get("never", patience);
                  }).message;
  const auto verdict = rank0->wait_verdict(soon());
  if (verdict) outcome.rank0 = verdict->reason;
  return outcome;
}

void check_both_say_so(const RelayOutcome& outcome) {
  CAPTURE(outcome.rank0, outcome.rank1);
  for (const std::string& text : {outcome.rank0, outcome.rank1}) {
    CHECK(contains(text, "was tampered with or damaged in transit"));
    CHECK(contains(text, "what rank"));
    CHECK(contains(text, "rank 0"));
  }
}

}  // namespace

TEST_CASE("a relay that passes everything on is not noticed", "[net]") {
  const auto patience = Deadline::after(std::chrono::milliseconds(20));
  const auto outcome = run([](RelayDirection, uint64_t, std::string&) {}, patience);
  CHECK(contains(outcome.rank1, "it was not set"));
}

TEST_CASE("one altered byte of a store's message ends both ranks, with the cause", "[net]") {
  const RelayDirection way = GENERATE(RelayDirection::kToServer, RelayDirection::kToClient);
  const uint64_t record =
      GENERATE(as<uint64_t>{}, kHandshake, kHandshake + kFrame);  // joining, and later
  // A byte of the length, of the body's tag, of the header's tag, of the body.
  const uint64_t within = GENERATE(as<uint64_t>{}, 0, 10, 35, 40);
  CAPTURE(int(way), record, within);
  check_both_say_so(run(meddle_at(way, record + within)));
}

TEST_CASE("a byte that is left out or repeated ends both ranks, with the cause", "[net]") {
  const Deed deed = GENERATE(Deed::kDrop, Deed::kRepeat);
  CAPTURE(int(deed));
  check_both_say_so(run(meddle_at(RelayDirection::kToServer, kHandshake + kFrame + 40, deed)));
}

TEST_CASE("a message that is said twice ends both ranks, with the cause", "[net]") {
  check_both_say_so(run([](RelayDirection way, uint64_t position, std::string& bytes) {
    if (way != RelayDirection::kToServer || position < kHandshake) return;
    bytes += bytes;
  }));
}

TEST_CASE("an altered handshake lets nobody in", "[net]") {
  const RelayDirection way = GENERATE(RelayDirection::kToServer, RelayDirection::kToClient);
  const uint64_t at = GENERATE(as<uint64_t>{}, 12, 18, 30, 60);
  CAPTURE(int(way), at);
  const Job job(2);
  const Relay relay(job.endpoint, meddle_at(way, at));
  const Caught caught = error_of([&] { Store(relay.endpoint(), 1, 2, job.secret, soon()); });
  CAPTURE(caught.message);
  CHECK(caught.says("someone tampers with the connection"));
}

TEST_CASE("an altered proof of a rank is told to it as a connection that is altered", "[net]") {
  const Job job(2);
  const Relay relay(job.endpoint, meddle_at(RelayDirection::kToServer, Handshake::kHelloBytes + 6));
  const Caught caught = error_of([&] { Store(relay.endpoint(), 1, 2, job.secret, soon()); });
  CAPTURE(caught.message);
  CHECK(caught.says("though it has the same job secret"));
  CHECK(caught.says("does someone tamper with the connection?"));
}
