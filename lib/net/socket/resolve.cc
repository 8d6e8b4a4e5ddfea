#include "lib/net/socket/resolve.h"

#include <netdb.h>
#include <pthread.h>

#include <csignal>
#include <cstring>
#include <future>
#include <memory>
#include <utility>

#include "lib/base/error.h"
#include "lib/base/thread.h"

namespace gxp {
namespace {

using Found = std::unique_ptr<addrinfo, void (*)(addrinfo*)>;

Found own(addrinfo* list) {
  return {list, [](addrinfo* owned) {
            if (owned != nullptr) freeaddrinfo(owned);
          }};
}

// AI_ADDRCONFIG is not used: where there is nothing but loopback it refuses even "127.0.0.1".
addrinfo make_hints(int flags) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = flags | AI_NUMERICSERV;
  return hints;
}

// getaddrinfo() waits as long as resolv.conf says, 10 s for a silent server, and cannot be called
// off: its thread, which takes no signals, is left behind at the deadline.
int ask_name_servers(const std::string& host, const std::string& port, int flags, Deadline deadline,
                     Found& found) {
  using Answer = std::pair<int, Found>;
  std::promise<Answer> promise;
  std::future<Answer> answer = promise.get_future();
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  start_thread("of a name's look-up", [host, port, flags, promise = std::move(promise)]() mutable {
    const addrinfo hints = make_hints(flags);
    addrinfo* list = nullptr;
    const int error = getaddrinfo(host.c_str(), port.c_str(), &hints, &list);
    promise.set_value({error, own(list)});
  }).detach();
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  while (answer.wait_for(deadline.remaining()) != std::future_status::ready) {
    if (deadline.expired()) return EAI_INPROGRESS;
  }
  auto [error, list] = answer.get();
  found = std::move(list);
  return error;
}

}  // namespace

std::vector<Address> resolve(const std::string& host, int port, bool to_listen, Deadline deadline,
                             std::string& cause) {
  const int flags = to_listen ? AI_PASSIVE : 0;
  const std::string service = std::to_string(port);
  const addrinfo hints = make_hints(flags | (host.empty() ? 0 : AI_NUMERICHOST));
  addrinfo* list = nullptr;
  int error = getaddrinfo(host.empty() ? nullptr : host.c_str(), service.c_str(), &hints, &list);
  Found found = own(list);
  if (error == EAI_NONAME && !host.empty())
    error = ask_name_servers(host, service, flags, deadline, found);
  std::vector<Address> addresses;
  if (error != 0) {
    cause = fmt::format("cannot resolve the name ({})", error == EAI_INPROGRESS
                                                            ? "the name servers do not answer"
                                                            : gai_strerror(error));
    return addresses;
  }
  for (const addrinfo* entry = found.get(); entry != nullptr; entry = entry->ai_next) {
    Address& address = addresses.emplace_back();
    std::memcpy(&address.storage, entry->ai_addr, entry->ai_addrlen);
    address.length = entry->ai_addrlen;
  }
  return addresses;
}

}  // namespace gxp
