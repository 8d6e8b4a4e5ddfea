#include "lib/net/resolve.h"

#include <netdb.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <memory>

#include "lib/base/error.h"

namespace gxp {
namespace {

using Found = std::unique_ptr<addrinfo, void (*)(addrinfo*)>;

Found own(addrinfo* list) {
  return {list, [](addrinfo* owned) {
            if (owned != nullptr) freeaddrinfo(owned);
          }};
}

// What the C library's thread reads and writes.
struct Query {
  std::string host, port;
  addrinfo hints{};
  gaicb request{};
};

timespec to_timespec(Deadline::Duration time) {
  const auto seconds = std::chrono::floor<std::chrono::seconds>(time);
  const auto rest = std::chrono::duration_cast<std::chrono::nanoseconds>(time - seconds);
  return {.tv_sec = time_t(seconds.count()), .tv_nsec = long(rest.count())};
}

// AI_ADDRCONFIG is not used: where there is nothing but loopback it refuses even "127.0.0.1".
addrinfo make_hints(int flags) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = flags | AI_NUMERICSERV;
  return hints;
}

// getaddrinfo() waits as long as resolv.conf says, 10 s for a silent server.
int ask_name_servers(const std::string& host, const std::string& port, int flags, Deadline deadline,
                     addrinfo*& found) {
  auto query = std::make_unique<Query>(Query{host, port, make_hints(flags)});
  query->request = {.ar_name = query->host.c_str(),
                    .ar_service = query->port.c_str(),
                    .ar_request = &query->hints,
                    .ar_result = nullptr,
                    .__return = 0,
                    .__glibc_reserved = {}};
  gaicb* request = &query->request;
  const int started = getaddrinfo_a(GAI_NOWAIT, &request, 1, nullptr);
  if (started != 0) return started;
  while (gai_error(request) == EAI_INPROGRESS) {
    if (deadline.expired()) {
      // The thread is in the midst of it: what it uses stays for good.
      if (gai_cancel(request) == EAI_NOTCANCELED) (void)query.release();
      return EAI_INPROGRESS;
    }
    const timespec rest = to_timespec(deadline.remaining());
    gai_suspend(&request, 1, &rest);
  }
  found = request->ar_result;
  return gai_error(request);
}

}  // namespace

std::vector<Address> resolve(const std::string& host, int port, bool to_listen, Deadline deadline,
                             std::string& cause) {
  const int flags = to_listen ? AI_PASSIVE : 0;
  const std::string service = std::to_string(port);
  const addrinfo hints = make_hints(flags | (host.empty() ? 0 : AI_NUMERICHOST));
  addrinfo* list = nullptr;
  int error = getaddrinfo(host.empty() ? nullptr : host.c_str(), service.c_str(), &hints, &list);
  if (error == EAI_NONAME && !host.empty())
    error = ask_name_servers(host, service, flags, deadline, list);
  const Found found = own(list);
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
