// Two ranks whose connection passes through somebody who does not know the secret.
#include "tests/relay.h"

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "lib/base/choice.h"
#include "lib/net/socket/authenticate.h"
#include "lib/transport/peers/peer_transport.h"
#include "lib/transport/stream/mesh.h"
#include "lib/transport/tcp/sealed_stream.h"
#include "lib/transport/tcp/tcp_links.h"
#include "tests/catch.h"
#include "tests/transport/worlds.h"

using namespace gxp;
using namespace std::chrono_literals;

namespace {

constexpr uint64_t kHandshake = Handshake::kHelloBytes + Handshake::kProofBytes;
constexpr uint64_t kMessageHeader = 24;
// By which the bytes of messages are later on this way: rank 0 says first that rank 1 is let in.
constexpr uint64_t admission(RelayDirection way) {
  return way == RelayDirection::kToClient ? 1 : 0;
}
const std::vector<size_t> kSizes{8, 5000, 300000, 8};
// Where the second message's record begins.
constexpr uint64_t kSecond = kHandshake + kRecordHeaderBytes + kMessageHeader + 8;
// In the third message, behind its first record.
constexpr uint64_t kLarge = kSecond + 5060 + kRecordHeaderBytes + kMessageHeader + 8192;

// The transport of a rank of two; rank 1 finds rank 0 behind the relay that it puts into `relay`.
std::unique_ptr<Transport> join(const TransportContext& context, const Meddle& meddle,
                                std::optional<Relay>& relay) {
  Fd listener = listen_tcp({"127.0.0.1", 0});
  const std::string address = to_string(local_endpoint(listener.get()));
  const auto connect = [&](const std::string& where, std::string_view peer, Deadline deadline) {
    relay.emplace(parse_endpoint(where), meddle);
    return connect_tcp(relay->endpoint(), peer, deadline);
  };
  auto mesh = connect_mesh_with_keys(context, {"test", std::move(listener), address, connect});
  const size_t peer = size_t(1 - context.rank);
  auto common = std::make_unique<TcpCommon>();
  std::vector<MeshConnection> connections;
  connections.push_back(std::move(mesh[peer]));
  std::vector<TcpPeer> peers(2);
  peers[peer] = make_tcp_peer(std::move(connections), context, int(peer), *common);
  PeerTransportParts parts{.name = "tcp",
                           .rank = context.rank,
                           .world_size = 2,
                           .groups = {},
                           .hosts = {},
                           .store = context.store};
  parts.groups.push_back(std::make_unique<TcpLinks>(std::move(peers), std::move(common)));
  return std::make_unique<PeerTransport>(std::move(parts));
}

// Bytes that are folded in where they arrive.
void fold(const void*, std::byte* target, const std::byte* arrived, size_t bytes) {
  for (size_t i = 0; i < bytes; ++i) target[i] ^= arrived[i];
}

// Both ranks send the other messages and fold what comes into zeros; "wrong bytes" if that is not
// what was sent. The errors by rank.
std::vector<std::string> run(Protection protection, const Meddle& meddle) {
  World world("tcp", 2);
  std::optional<Relay> relay;
  return run_all(2, [&](int rank) {
    const auto store = world.join_store(rank);
    TransportContext context = world.context(*store);
    context.tcp.protect = protection;
    const auto transport = join(context, meddle, relay);
    for (const size_t bytes : kSizes) {
      const auto out = payload(bytes, rank, 1 - rank);
      std::vector<std::byte> in(bytes);
      const Ticket receive = transport->recv_and_combine(1 - rank, 1, memory_of(in), {fold});
      transport->wait(transport->send(1 - rank, 1, memory_of(out)), soon());
      transport->wait(receive, soon());
      if (in != payload(bytes, 1 - rank, rank)) fail(ErrorKind::kPeer, "wrong bytes");
    }
    store->barrier("end", soon());
    store->close();
  });
}

void check_both_say_so(const std::vector<std::string>& errors) {
  for (const std::string& error : errors) {
    CAPTURE(error);
    CHECK(contains(error, "what rank "));
    CHECK(contains(error, "over TCP"));
    CHECK(contains(error, "was tampered with or damaged in transit"));
  }
}

}  // namespace

TEST_CASE("payload that passes a relay unchanged arrives", "[relay]") {
  const auto protection =
      GENERATE(Protection::kNone, Protection::kAuthenticate, Protection::kEncrypt);
  const std::vector<std::string> none(2);
  CHECK(run(protection, [](RelayDirection, uint64_t, std::string&) {}) == none);
}

TEST_CASE("an altered byte of protected payload ends both ranks, with the cause", "[relay]") {
  const auto protection = GENERATE(Protection::kAuthenticate, Protection::kEncrypt);
  const RelayDirection way = GENERATE(RelayDirection::kToServer, RelayDirection::kToClient);
  // A byte of a record's length, both tags, the message's header and bytes; in a large one's
  // middle.
  const uint64_t at =
      GENERATE(as<uint64_t>{}, kHandshake, kHandshake + 4, kHandshake + 20, kHandshake + 40,
               kHandshake + 65, kSecond + 3000, kLarge + 2, kLarge + 40000);
  CAPTURE(Choice(protection).word(), int(way), at);
  check_both_say_so(run(protection, meddle_at(way, at + admission(way))));
}

TEST_CASE("a byte left out or repeated ends both ranks, with the cause", "[relay]") {
  const auto protection = GENERATE(Protection::kAuthenticate, Protection::kEncrypt);
  const Deed deed = GENERATE(Deed::kDrop, Deed::kRepeat);
  const uint64_t at = GENERATE(as<uint64_t>{}, kSecond + 1, kLarge + 999);
  CAPTURE(Choice(protection).word(), int(deed), at);
  check_both_say_so(run(protection, meddle_at(RelayDirection::kToServer, at, deed)));
}

TEST_CASE("a message that is said twice ends both ranks, with the cause", "[relay]") {
  constexpr size_t kFirst = kSecond - kHandshake;
  const auto twice = [](RelayDirection way, uint64_t position, std::string& bytes) {
    const bool whole = position <= kHandshake && position + bytes.size() >= kSecond;
    if (way == RelayDirection::kToServer && whole)
      bytes.insert(kSecond - position, bytes.substr(kHandshake - position, kFirst));
    else if (way == RelayDirection::kToServer && position == kHandshake)
      bytes += bytes;
  };
  check_both_say_so(run(Protection::kAuthenticate, twice));
}

// What "none" means: docs/SECURITY.md.
TEST_CASE("an altered byte of payload that is not protected goes unnoticed", "[relay]") {
  const auto errors =
      run(Protection::kNone, meddle_at(RelayDirection::kToServer, kHandshake + kMessageHeader + 3));
  CHECK(contains(errors[0], "wrong bytes"));
}
