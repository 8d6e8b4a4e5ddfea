#include "lib/net/store/store.h"

#include <sys/socket.h>

#include <future>
#include <memory>

#include "lib/net/socket/authenticate.h"
#include "lib/net/store/configuration.h"
#include "lib/net/store/rendezvous.h"
#include "lib/net/store/store_server.h"
#include "tests/catch.h"
#include "tests/error_of.h"
#include "tests/net/store_job.h"

using namespace gxp;
using namespace std::chrono_literals;

namespace {

// Runs `body(store)` as ranks 0 to count - 1 at the same time; results or errors in order of rank.
template <class Body>
std::vector<Caught> run_ranks(const Job& job, int count, Body body) {
  std::vector<std::future<Caught>> ranks;
  for (int rank = 0; rank < count; ++rank) {
    ranks.push_back(std::async(std::launch::async, [&job, rank, body] {
      return error_of([&] {
        const auto store = job.join(rank);
        body(*store);
        store->close();
      });
    }));
  }
  std::vector<Caught> results;
  for (auto& rank : ranks) results.push_back(rank.get());
  return results;
}

int culprit(const Store& store) {
  const auto verdict = store.wait_verdict(soon());
  return verdict ? verdict->rank : -1;
}

}  // namespace

TEST_CASE("every rank sees what any rank has set and gathers all values in order", "[net]") {
  const int world_size = GENERATE(1, 2, 3, 5, 8);
  CAPTURE(world_size);
  const Job job(world_size);
  const auto results = run_ranks(job, world_size, [&](Store& store) {
    const std::string own(size_t(store.rank()) * 1000, char('a' + store.rank()));
    store.set("key" + std::to_string(store.rank()), own);
    const int next = (store.rank() + 1) % store.world_size();
    GXP_ASSERT(store.get("key" + std::to_string(next), soon()).size() == size_t(next) * 1000);
    for (int round = 0; round < 3; ++round) {  // one name, again and again
      const auto all = store.gather("sizes", own, soon());
      GXP_ASSERT(all.size() == size_t(store.world_size()));
      for (size_t rank = 0; rank < all.size(); ++rank) GXP_ASSERT(all[rank].size() == rank * 1000);
    }
    store.barrier("end", soon());
  });
  for (const Caught& result : results) CHECK(result.message.empty());
  CHECK(job.server->wait_goodbyes(soon()));
}

TEST_CASE("a value may have 16 MiB and no byte more", "[net]") {
  const Job job(1);
  const auto store = job.join(0);
  const std::string large(kMaxValueBytes, 'x');
  store->set("large", large);
  CHECK(store->get("large", soon()) == large);
  CHECK(error_of([&] { store->set("larger", large + "x"); }).kind == ErrorKind::kInternal);
  store->close();
}

TEST_CASE("ranks that do not come are named to every rank that did", "[net]") {
  const Job job(4);
  const auto results =
      run_ranks(job, 2, [](Store& store) { store.gather("start", "", Deadline::after(200ms)); });
  for (const Caught& result : results) {
    CAPTURE(result.message);
    CHECK(result.kind == ErrorKind::kPeer);
    CHECK((result.says("rank 2, 3 of 4 did not join within 0.2 s") ||
           result.says("rank 2: it and rank 3 did not reach " + to_string(job.endpoint))));
  }
}

TEST_CASE("a key that nobody sets is named at the deadline", "[net]") {
  const Job job(1);
  const auto store = job.join(0);
  const Caught caught = error_of([&] { store->get("absent", Deadline::after(20ms)); });
  CHECK(caught.kind == ErrorKind::kPeer);
  CHECK(caught.says("get 'absent'"));
  CHECK(caught.says(to_string(job.endpoint)));
}

TEST_CASE("a rank that does not set what it is to set is the culprit", "[net]") {
  const Job job(2);
  const auto ranks = job.join_all();
  const Caught caught = error_of([&] {
    ranks[1]->from_rank_0(
        "profile", [] { return std::string(); }, Deadline::after(20ms));
  });
  CHECK(caught.says("rank 0"));
  CHECK(caught.says("get 'profile'"));
  CHECK(culprit(*ranks[0]) == 0);
}

TEST_CASE("a rank that sets nothing since it waits for another one is not the culprit", "[net]") {
  const Job job(3);
  const auto ranks = job.join_all();
  auto waiting = std::async(std::launch::async, [&] {
    return error_of([&] { ranks[1]->get("probe", Deadline::after(20ms), 0); });
  });
  CHECK_FALSE(ranks[0]->wait_verdict(Deadline::after(300ms)));  // it is late as well
  ranks[0]->abort(2, "it has not sent its part");
  CHECK(waiting.get().says("rank 2: it has not sent its part"));
}

TEST_CASE("a rank 0 that stands still while ranks meet is named as the silent store", "[net]") {
  const bool gathers = GENERATE(false, true);
  CAPTURE(gathers);
  const SilentServer server;
  const Deadline patience = Deadline::after(20ms);
  const Caught caught = error_of([&] {
    if (gathers)
      server.rank->gather("configuration digest", "", patience);
    else
      server.rank->from_rank_0(
          "profile", [] { return std::string(); }, patience);
  });
  CAPTURE(caught.message);
  CHECK(caught.kind == ErrorKind::kPeer);
  CHECK(caught.says("rank 0: its rendezvous store at "));
  CHECK(caught.says("is its process stopped"));
}

TEST_CASE("a rank with another secret, world size or a rank in use is refused", "[net]") {
  const Job job(2);
  const auto first = job.join(0);
  const auto join = [&](int rank, int world_size, const Secret& secret) {
    return error_of([&] { Store(job.endpoint, rank, world_size, secret, soon()); });
  };
  CHECK(join(1, 2, Secret::generate()).says("the job secret differs"));
  CHECK(join(1, 3, job.secret).says("world size is 3, that of rank 0 2"));
  CHECK(join(7, 2, job.secret).says("there are 2 ranks"));
  CHECK(join(0, 2, job.secret).says("already joined"));
  CHECK_FALSE(first->verdict().has_value());
}

TEST_CASE("garbage, slow and half-open clients cost the others nothing", "[net]") {
  const Job job(2);
  std::vector<Fd> strangers;
  for (int i = 0; i < 200; ++i) {
    strangers.push_back(connect_tcp(job.endpoint, "store", soon()));
    const std::string garbage(size_t(i) * 7, char(i));
    (void)::send(strangers.back().get(), garbage.data(), garbage.size(), MSG_NOSIGNAL);
  }
  const auto results = run_ranks(job, 2, [](Store& store) { store.barrier("b", soon()); });
  for (const Caught& result : results) CHECK(result.message.empty());
}

TEST_CASE("an authenticated client that breaks the protocol is dropped alone", "[net]") {
  const Job job(2);
  const auto good = job.join(0);
  const Fd bad = connect_tcp(job.endpoint, "store", soon());
  const SealKeys keys = authenticate_client(bad.get(), job.secret, "store", 1, soon()).keys;
  Sealer sealer(keys.cipher, keys.sending, Protection::kEncrypt);
  std::string sealed;
  append_sealed(sealed, std::string(64, '\xff'), sealer);
  write_all(bad.get(), std::as_bytes(std::span(sealed)), "store", soon());
  std::byte byte{};
  CHECK(error_of([&] { read_exact(bad.get(), {&byte, 1}, "store", soon()); }).kind.has_value());
  good->set("k", "v");
  CHECK(good->get("k", soon()) == "v");
}

TEST_CASE("a killed rank is everybody's verdict, whoever complains about it", "[net]") {
  const Job job(4);
  auto ranks = job.join_these({0, 1, 3});
  std::atomic<int> alarms = 0;
  for (auto& rank : ranks) {
    rank->on_abort(
        [&alarms](const FailureVerdict& verdict) { alarms += verdict.rank == 2 ? 1 : 1000; });
  }
  RankProcess victim(job, 2);
  REQUIRE(victim.joined());
  victim.kill();
  ranks[1]->abort(2, "rank 2 lost its connection");
  ranks[2]->abort(1, "rank 1 lost its connection");  // a consequence
  for (auto& rank : ranks) CHECK(culprit(*rank) == 2);
  for (auto& rank : ranks) CHECK(error_of([&] { rank->get("x", soon()); }).says("rank 2: "));
  ranks.clear();  // joins the watchers: all alarms have been called
  CHECK(alarms == 3);
}

TEST_CASE("a rank's own failure and an accusation reach all ranks with their reason", "[net]") {
  const int culprit_rank = GENERATE(1, 2);
  const Job job(3);
  auto ranks = job.join_all();
  ranks[1]->abort(culprit_rank, "loss is NaN at step 7");
  for (auto& rank : ranks) {
    const auto verdict = rank->wait_verdict(soon());
    REQUIRE(verdict.has_value());
    CHECK(verdict->rank == culprit_rank);
    CHECK(verdict->reason == "loss is NaN at step 7");
  }
}

TEST_CASE("the end of a rank counts as told by others only if it has not joined", "[net]") {
  const Job job(3);
  const auto first = job.join(0);
  const auto second = job.join(1);
  const auto tell_end_of = [&](int rank) {
    Store::report_absence(job.endpoint, rank, 3, job.secret, "it was killed", soon());
  };
  tell_end_of(1);
  CHECK_FALSE(first->verdict());
  tell_end_of(2);
  CHECK((culprit(*first) == 2 && culprit(*second) == 2));
  CHECK(first->verdict()->reason == "it was killed");
}

TEST_CASE("a rank on its way hears why the job has failed while the server ends", "[net]") {
  Job job(3);
  const auto first = job.join(0);
  Store::report_absence(job.endpoint, 1, 3, job.secret, "it was killed", soon());
  CHECK(culprit(*first) == 1);
  const auto ending = std::async(std::launch::async, [&job] { job.server.reset(); });
  CHECK(culprit(*job.join(2)) == 1);
}

TEST_CASE("those who wait for a value are woken by a failure", "[net]") {
  const Job job(2);
  const auto first = job.join(0);
  auto second = job.join(1);
  auto waiting = std::async(std::launch::async,
                            [&] { return error_of([&] { first->get("never", soon()); }); });
  second.reset();  // without close(): as when an exception unwinds
  const Caught caught = waiting.get();
  CHECK(caught.kind == ErrorKind::kPeer);
  CHECK(caught.says("rank 1: its connection ended without a goodbye"));
}

TEST_CASE("an alarm set after the verdict is called at once", "[net]") {
  const Job job(1);
  const auto store = job.join(0);
  store->abort(0, "x");
  CHECK(culprit(*store) == 0);
  int calls = 0;
  store->on_abort([&calls](const FailureVerdict&) { ++calls; });
  CHECK(calls == 1);
}

TEST_CASE("goodbyes are no failure, and neither is the server's", "[net]") {
  Job job(3);
  auto ranks = job.join_all();
  ranks[1]->close();
  ranks[2]->set("after", "1");
  CHECK(ranks[2]->get("after", soon()) == "1");
  CHECK_FALSE(job.server->wait_goodbyes(Deadline::after(10ms)));
  ranks[0]->close();
  job.server.reset();
  CHECK_FALSE(ranks[2]->wait_verdict(soon()).has_value());
  CHECK(error_of([&] { ranks[2]->get("k", soon()); }).says("rank 0 has ended the store"));
}

TEST_CASE("a server whose own rank fails still delivers the verdict", "[net]") {
  Job job(2);
  auto ranks = job.join_all();
  ranks[0].reset();  // without close()
  job.server.reset();
  CHECK(culprit(*ranks[1]) == 0);
}

TEST_CASE("the death of rank 0's process is a verdict too", "[net]") {
  SilentServer server;
  server.socket.reset();
  const auto verdict = server.rank->wait_verdict(soon());
  REQUIRE(verdict.has_value());
  CHECK(verdict->rank == 0);
  CHECK(verdict->reason.find("store") != std::string::npos);
}

TEST_CASE("ranks with different configurations are all told which keys differ", "[net]") {
  const Job job(3);
  const auto results = run_ranks(job, 3, [](Store& store) {
    const std::string lr = store.rank() == 2 ? "0.002" : "0.001";
    check_configuration(store, {{"train.seed", "1"}}, soon());
    check_configuration(store, {{"optim.lr", lr}, {"train.seed", "1"}}, soon());
  });
  for (const Caught& result : results) {
    CHECK(result.kind == ErrorKind::kConfig);
    CHECK(result.says("optim.lr: 0.001 on rank 0, 1, 0.002 on rank 2"));
    CHECK_FALSE(result.says("train.seed"));
  }
}

TEST_CASE("a single process joins its job of one without a secret or a port", "[net]") {
  Rendezvous job = join_job(identity_from({}), {}, soon());
  CHECK(job.store->gather("all", "me", soon()) == std::vector<std::string>{"me"});
  job.close(soon());
}
