#include "lib/transport/stream/local_mesh.h"

#include <fmt/format.h>
#include <sodium.h>

#include <algorithm>
#include <array>

#include "lib/net/socket/unix_socket.h"
#include "lib/transport/stream/mesh.h"

namespace gxp {
namespace {

// Not to be guessed, so that nobody can take it first.
std::string random_name() {
  std::array<unsigned char, 16> random{};
  std::array<char, 2 * random.size() + 1> text{};
  randombytes_buf(random.data(), random.size());
  return fmt::format("gxp-{}",
                     sodium_bin2hex(text.data(), text.size(), random.data(), random.size()));
}

}  // namespace

std::vector<Fd> connect_local_mesh(const TransportContext& context, const std::string& name,
                                   const JoinedPairs& joins) {
  const std::string address = random_name();
  return connect_mesh(context, {.name = name,
                                .listener = listen_unix(address, std::max(64, context.world_size)),
                                .address = address,
                                .connect = connect_unix,
                                .joins = [&](int peer) { return joins(context.rank, peer); }});
}

}  // namespace gxp
