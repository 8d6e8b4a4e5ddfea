// The clients of the store's server: accepts them, limits the cost of strangers, waits for clients'
// messages, and writes messages that are queued for them. store_server.h has the requests.
//
// A stranger is a client that has not joined. Their places are scarce (lib/net/socket/strangers.h),
// and each is dropped after 5 s.
//   Threads  the server's, except port() and wake(), which any thread may call.
#pragma once

#include <functional>
#include <list>
#include <optional>
#include <vector>

#include "lib/base/deadline.h"
#include "lib/base/fd.h"
#include "lib/net/socket/secret.h"
#include "lib/net/store/store_connection.h"

namespace gxp {

class StoreClients {
 public:
  StoreClients(Fd listener, const Secret& secret, Deadline::Duration silence);

  [[nodiscard]] int port() const { return port_; }
  // Ends the wait() that is under way, or the next one.
  void wake();

  // Waits for bytes, for a new client or for wake(), until `until` if there is one. Returns the
  // clients from which bytes have arrived; these pointers are valid until finish_round().
  std::vector<StoreConnection*> wait(std::optional<Deadline> until);
  // kIo: no file descriptor is free for a client, and no unauthenticated connection can be dropped.
  // Otherwise lets one new client in, writes what the sockets take, and drops the clients that are
  // `gone` or, with everything sent, `leaving`. Calls `lose` for a client whose connection has
  // ended.
  void finish_round(const std::function<void(StoreConnection&)>& lose);
  // Accepts no more clients, and drops unauthenticated connections.
  void stop_listening();
  void drop_all();
  [[nodiscard]] bool has_unsent() const;

 private:
  [[nodiscard]] bool may_accept() const { return listener_.valid() && accept_again_.expired(); }
  void accept_client();

  Fd listener_;
  const int port_;
  Fd wake_;
  const Secret secret_;
  const Deadline::Duration silence_;  // of detect_silence()
  // The oldest first; in a list, so that pointers to them stay valid.
  std::list<StoreConnection> clients_;
  bool knocks_ = false;  // a new client waits at the listener
  Deadline accept_again_ = Deadline::after(Deadline::Duration::zero());
};

}  // namespace gxp
