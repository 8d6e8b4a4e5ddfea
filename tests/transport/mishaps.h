// What the tests of verbs have in common: the fake, traffic to disturb, and ranks that report.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "tests/catch.h"
#include "tests/transport/worlds.h"

namespace gxp {

inline constexpr size_t kLong = 300000;  // several lanes, two tiles

// The fake as it is at first; it is so again at the end.
class Mishaps {
 public:
  Mishaps() : fake_(fake_verbs()) {
    if (fake_ == nullptr) WARN("skipped: libibverbs is absent, or the system's own");
    if (fake_ != nullptr) fake_->reset();
  }
  ~Mishaps() {
    if (fake_ != nullptr) fake_->reset();
  }
  explicit operator bool() const { return fake_ != nullptr; }
  FakeVerbs* operator->() const { return fake_; }

 private:
  FakeVerbs* fake_;
};

// Each rank sends `count` messages to each other and receives as many; whether all were right.
inline bool exchange(Transport& transport, size_t bytes, int count, Deadline deadline = soon()) {
  const int me = transport.rank();
  std::vector<std::vector<std::byte>> sent;
  std::vector<std::vector<std::byte>> got;
  std::vector<Ticket> tickets;
  const size_t all = size_t(count) * size_t(transport.world_size());
  sent.reserve(all);
  got.reserve(all);
  for (int i = 0; i < count; ++i) {
    for (int peer = 0; peer < transport.world_size(); ++peer) {
      if (peer == me) continue;
      got.emplace_back(bytes);
      tickets.push_back(transport.recv(peer, Tag(i), memory_of(got.back())));
      sent.push_back(payload(bytes, me, peer, i));
      tickets.push_back(transport.send(peer, Tag(i), memory_of(std::as_const(sent.back()))));
    }
  }
  for (const Ticket ticket : tickets) transport.wait(ticket, deadline);
  size_t at = 0;
  bool right = true;
  for (int i = 0; i < count; ++i) {
    for (int peer = 0; peer < transport.world_size(); ++peer) {
      if (peer != me) right &= got[at++] == payload(bytes, peer, me, i);
    }
  }
  return right;
}

inline std::vector<std::string> none(int ranks) { return std::vector<std::string>(size_t(ranks)); }

// body(transport, store) on every rank; one that throws tells all why, as communicators do.
inline std::vector<std::string> run_reporting(const std::string& name, int world_size,
                                              const std::function<void(Transport&, Store&)>& body) {
  World world(name, world_size);
  return run_all(world_size, [&](int rank) {
    const auto store = world.join_store(rank);
    const auto transport = world.join(*store);
    try {
      body(*transport, *store);
    } catch (const Error& error) {
      store->abort(rank, error.what());
      throw;
    }
    store->close();
  });
}

}  // namespace gxp
