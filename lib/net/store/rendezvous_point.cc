#include "lib/net/store/rendezvous_point.h"

#include <fcntl.h>
#include <sys/socket.h>

#include <vector>

#include "lib/base/error.h"
#include "lib/base/log.h"
#include "lib/base/text/read_number.h"
#include "lib/net/identity/own_address.h"
#include "lib/net/identity/pmi.h"
#include "lib/net/identity/pmix.h"
#include "lib/net/identity/user_secret.h"
#include "lib/net/socket/socket.h"
#include "lib/net/store/store_server.h"

namespace gxp {
namespace {

constexpr std::string_view kRendezvousVersion = "1";
constexpr std::string_view kGiven = "given";

// The socket that rank 0's store listens on: the one inherited from gxp's launcher (GXP_STORE_FD),
// else a new one on identity.master_port: of loopback if master_addr is, else of all interfaces,
// as a host may not know the address that others know it by. Throws kIo if the port is taken.
Fd open_store_listener(const RankIdentity& identity, const Environment& environment) {
  const std::string* text = find_variable(environment, kStoreFdVariable);
  if (text == nullptr) {
    const std::string host = is_loopback(identity.master_addr) ? identity.master_addr : "";
    return listen_tcp({host, identity.master_port});
  }
  const int fd = read_number<int>(*text).value_or(-1);
  int listening = 0;
  socklen_t size = sizeof listening;
  if (fd < 0 || ::getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listening, &size) != 0 || !listening)
    fail(ErrorKind::kConfig, "take over the store's socket: {}='{}' is not a listening socket",
         kStoreFdVariable, *text);
  check_sys(::fcntl(fd, F_SETFD, FD_CLOEXEC), "take over the store's socket");
  return Fd(fd);
}

// Rank 0's text on all ranks; nothing if the launcher's exchange is shut.
std::optional<std::string> pass_text(const RankIdentity& identity, const Environment& environment,
                                     const std::string& text, Deadline deadline) {
  const bool first = identity.rank == 0;
  if (identity.exchange == Exchange::kPmi) {
    const std::string* socket = find_variable(environment, "PMI_FD");
    if (auto got = pass_by_pmi(read_number<int>(socket == nullptr ? "" : *socket).value_or(-1),
                               first, text, deadline))
      return got;
    if (first)
      log_info("{}: its PMI connection is closed; was another program started before?",
               to_string(identity.launcher));
    return std::nullopt;
  }
  try {
    return pass_by_pmix(first, text, deadline);
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::kUnavailable) throw;
    if (first) log_info("{}: {}", to_string(identity.launcher), error.what());
    return std::nullopt;
  }
}

// What else would tell where rank 0 is, where the launcher's exchange is shut.
std::string_view other_remedy(Exchange exchange) {
  if (exchange == Exchange::kPmix) return "; or install PMIx's library, libpmix.so.2";
  if (exchange == Exchange::kPmi)
    return "; its PMI, which would have it, serves only a rank's first program";
  return "";
}

RendezvousPoint rendezvous_as_told(const RankIdentity& identity, const Environment& environment,
                                   const std::optional<Secret>& given) {
  if (identity.master_addr.empty())
    fail(ErrorKind::kConfig,
         "read the rank identity from {}: the host of rank 0 is not given; set MASTER_ADDR for all "
         "ranks (mpirun -x MASTER_ADDR=HOST, mpiexec -genv MASTER_ADDR HOST){}",
         to_string(identity.launcher), other_remedy(identity.exchange));
  const std::string job = fmt::format("{} {}", identity.job, identity.master_port);
  const Secret secret = given ? *given : user_secret(environment).for_job(job);
  return {{identity.master_addr, identity.master_port},
          secret,
          identity.rank == 0 ? open_store_listener(identity, environment) : Fd()};
}

// What rank 0 then announces.
RendezvousPoint open_anywhere(RankIdentity identity, const Environment& environment,
                              const std::optional<Secret>& given) {
  if (!identity.port_given) identity.master_port = 0;
  if (identity.master_addr.empty()) identity.master_addr = own_address();
  Fd listener = open_store_listener(identity, environment);
  const int port = local_endpoint(listener.get()).port;
  return {{identity.master_addr, port}, given.value_or(Secret::generate()), std::move(listener)};
}

RendezvousPoint rendezvous_as_announced(const std::string& text,
                                        const std::optional<Secret>& given) {
  const auto [store, secret] = parse_announcement(text);
  if (secret.has_value() == given.has_value())
    fail(ErrorKind::kConfig,
         "agree on a job secret: {} and {} not; set {} for all ranks (mpirun -x {}) or for none",
         given ? "this rank was given one" : "rank 0 was given one",
         given ? "rank 0 was" : "this rank was", kSecretFileVariable, kSecretFileVariable);
  return {store, given ? *given : *secret, Fd()};
}

}  // namespace

std::string announcement(const Endpoint& store, const std::optional<Secret>& secret) {
  return fmt::format("{},{},{},{}", kRendezvousVersion, store.host, store.port,
                     secret ? secret->hex() : std::string(kGiven));
}

std::pair<Endpoint, std::optional<Secret>> parse_announcement(std::string_view text) {
  std::vector<std::string_view> parts;
  for (std::string_view rest = text; parts.size() < 5;) {
    const size_t comma = rest.find(',');
    parts.push_back(rest.substr(0, comma));
    if (comma == std::string_view::npos) break;
    rest.remove_prefix(comma + 1);
  }
  const int port = parts.size() == 4 ? read_number<int>(parts[2]).value_or(-1) : -1;
  if (port < 1 || port > 65535 || parts[0] != kRendezvousVersion || parts[1].empty())
    fail(ErrorKind::kPeer,
         "learn rank 0's address from the launcher: the {} B that it passed on are not in this "
         "gxp's format; install the same gxp on all hosts",
         text.size());
  std::optional<Secret> secret;
  if (parts[3] != kGiven) secret = Secret::from_hex(parts[3], "the launcher's key-value exchange");
  return {{std::string(parts[1]), port}, secret};
}

RendezvousPoint arrange_rendezvous(const RankIdentity& identity, const Environment& environment,
                                   Deadline deadline) {
  const std::optional<Secret> given = find_secret(environment);
  if (identity.world_size == 1)
    return {{identity.master_addr, identity.master_port},
            given.value_or(Secret::generate()),
            open_store_listener(identity, environment)};
  const bool settled = given && identity.port_given && !identity.master_addr.empty();
  if (settled || identity.exchange == Exchange::kNone)
    return rendezvous_as_told(identity, environment, given);
  if (identity.rank != 0) {
    const auto text = pass_text(identity, environment, "", deadline);
    return text ? rendezvous_as_announced(*text, given)
                : rendezvous_as_told(identity, environment, given);
  }
  RendezvousPoint point = open_anywhere(identity, environment, given);
  const std::optional<Secret> told = given ? std::nullopt : std::optional(point.secret);
  if (pass_text(identity, environment, announcement(point.store, told), deadline)) return point;
  point.listener.reset();
  return rendezvous_as_told(identity, environment, given);
}

}  // namespace gxp
