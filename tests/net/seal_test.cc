#include "lib/net/socket/seal.h"

#include <algorithm>
#include <string>
#include <vector>

#include "lib/base/choice.h"
#include "lib/net/socket/authenticate.h"
#include "tests/catch.h"
#include "tests/error_of.h"

using namespace gxp;

namespace {

using Role = Handshake::Role;

SealKey some_key(uint8_t first = 1) {
  SealKey key;
  key.data()[0] = first;
  return key;
}

// What a receiver makes of records: all that they hold, or "tampered".
std::string opened(std::string_view records, Opener& opener) {
  std::string text;
  size_t offset = 0;
  const Caught caught = error_of([&] { open_sealed(records, &offset, opener, "this", text); });
  return caught.message.empty() ? text : "tampered";
}

// Two records of 50 bytes of body each, and where each begins.
struct Records {
  explicit Records(Sealer& sealer) {
    append_sealed(first, std::string(50, 'a'), sealer);
    append_sealed(second, std::string(50, 'b'), sealer);
  }
  std::string first;
  std::string second;
};

std::vector<Cipher> ciphers() {
  std::vector<Cipher> all{Cipher::kChaCha20Poly1305};
  if ((supported_ciphers() & uint32_t(Cipher::kAes256Gcm)) != 0) all.push_back(Cipher::kAes256Gcm);
  return all;
}

const auto kProtections = {Protection::kAuthenticate, Protection::kEncrypt};

struct SealedPair {
  Handshake client;
  Handshake server;
};

SealedPair handshake(const Secret& secret, uint32_t client_ciphers, uint32_t server_ciphers) {
  SealedPair pair{{Role::kClient, secret, "test", 1, "peer", client_ciphers},
                  {Role::kServer, secret, "test", 0, "peer", server_ciphers}};
  const auto proof = pair.client.answer(pair.server.hello());
  pair.client.verify(pair.server.answer(pair.client.hello()));
  pair.server.verify(proof);
  return pair;
}

std::string text_of(const SealKey& key) {
  return {reinterpret_cast<const char*>(key.data()), SealKey::kBytes};
}

}  // namespace

TEST_CASE("what is sealed opens, in records of any size and however it is cut", "[seal]") {
  for (const Cipher cipher : ciphers()) {
    for (const Protection protection : kProtections) {
      for (const size_t bytes : {size_t{0}, size_t{1}, size_t{15}, size_t{16}, size_t{1000},
                                 kMaxRecordBytes, 3 * kMaxRecordBytes + 7}) {
        CAPTURE(to_string(cipher), Choice(protection).word(), bytes);
        Sealer sealer(cipher, some_key(), protection);
        Opener opener(cipher, some_key(), protection);
        std::string text(bytes, 'x'), sealed;
        for (size_t i = 0; i < bytes; ++i) text[i] = char(i * i >> 3);
        append_sealed(sealed, text, sealer);
        std::string result;
        size_t offset = 0;
        for (size_t end = 0; end < sealed.size(); end += 40000)
          open_sealed(std::string_view(sealed).substr(0, end), &offset, opener, "this", result);
        open_sealed(sealed, &offset, opener, "this", result);
        CHECK(result == text);
        CHECK(offset == sealed.size());
      }
    }
  }
}

TEST_CASE("an altered bit anywhere in a record is seen", "[seal]") {
  for (const Cipher cipher : ciphers()) {
    for (const Protection protection : kProtections) {
      Sealer sealer(cipher, some_key(), protection);
      const Records records(sealer);
      for (size_t at = 0; at < records.first.size(); ++at) {
        CAPTURE(to_string(cipher), Choice(protection).word(), at);
        std::string altered = records.first;
        altered[at] = char(altered[at] ^ 1);
        Opener opener(cipher, some_key(), protection);
        CHECK(opened(altered, opener) == "tampered");
      }
    }
  }
}

TEST_CASE("records that are left out, repeated, swapped or another's are seen", "[seal]") {
  const Cipher cipher = GENERATE(from_range(ciphers()));
  const Protection protection = GENERATE(values(kProtections));
  Sealer sealer(cipher, some_key(), protection);
  const Records records(sealer);
  const auto result = [&](const std::string& bytes, uint8_t key = 1) {
    Opener opener(cipher, some_key(key), protection);
    return opened(bytes, opener);
  };
  CHECK(result(records.first + records.second) == std::string(50, 'a') + std::string(50, 'b'));
  CHECK(result(records.second) == "tampered");
  CHECK(result(records.first + records.first) == "tampered");
  CHECK(result(records.second + records.first) == "tampered");
  CHECK(result(records.first, 2) == "tampered");
}

TEST_CASE("what is encrypted does not show its text", "[seal]") {
  for (const Cipher cipher : ciphers()) {
    Sealer sealer(cipher, some_key(), Protection::kEncrypt);
    const Records records(sealer);
    CHECK(records.first.find("aaaa") == std::string::npos);
    CHECK(records.first.substr(kRecordHeaderBytes) != records.second.substr(kRecordHeaderBytes));
  }
}

TEST_CASE("each direction of each connection has a key of its own that both ends know", "[seal]") {
  const Secret secret = Secret::generate();
  const SealedPair pair = handshake(secret, 3, 3);
  const SealKeys client = pair.client.keys(), server = pair.server.keys();
  CHECK(text_of(client.sending) == text_of(server.receiving));
  CHECK(text_of(client.receiving) == text_of(server.sending));
  CHECK(text_of(client.sending) != text_of(client.receiving));
  const SealKeys other = handshake(secret, 3, 3).client.keys();
  CHECK(text_of(other.sending) != text_of(client.sending));
}

TEST_CASE("both ends take the fastest cipher that both have", "[seal]") {
  const Secret secret = Secret::generate();
  const auto agreed = [&](uint32_t client, uint32_t server) {
    const SealedPair pair = handshake(secret, client, server);
    CHECK(pair.client.keys().cipher == pair.server.keys().cipher);
    return pair.client.keys().cipher;
  };
  CHECK(agreed(3, 3) == Cipher::kAes256Gcm);
  CHECK(agreed(1, 3) == Cipher::kChaCha20Poly1305);
  CHECK(agreed(3, 1) == Cipher::kChaCha20Poly1305);
}

TEST_CASE("a cipher that someone strikes from a hello on its way is a failed proof", "[seal]") {
  const Secret secret = Secret::generate();
  Handshake client(Role::kClient, secret, "test", 1, "peer", 3);
  Handshake server(Role::kServer, secret, "test", 0, "peer", 3);
  auto weakened = client.hello();
  weakened[16] = 1;
  const auto proof = client.answer(server.hello());
  server.answer(weakened);
  CHECK(error_of([&] { server.verify(proof); }).says("someone tampers with the connection"));
}
