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
#include <string>
#include <vector>

#include "lib/base/deadline.h"
#include "lib/base/fd.h"
#include "lib/net/socket/authenticate.h"
#include "lib/net/socket/secret.h"
#include "lib/net/store/sealed_frames.h"

namespace gxp {

// One client of the store server: its handshake, the bytes that have come and those that are to
// go, which are encrypted and authenticated (seal.h). Reads and writes what the socket takes at
// once and never waits.
class StoreConnection {
 public:
  StoreConnection(Fd socket, const Secret& secret, Deadline::Duration handshake_time);

  [[nodiscard]] int fd() const { return socket_.get(); }
  [[nodiscard]] const std::string& address() const { return address_; }
  // The rank that the client has proved to be; -1 before.
  [[nodiscard]] int rank() const { return rank_; }
  [[nodiscard]] const Deadline& join_by() const { return join_by_; }
  [[nodiscard]] bool has_unsent() const { return sent_ < outbox_.size(); }

  // Takes in what has arrived, a bounded amount; drops it if the client is `leaving`. False at the
  // end of the connection; `why()` then says more if the end was not an ordinary one.
  bool receive();
  [[nodiscard]] const std::string& why() const { return why_; }
  // Whether nothing has come from the client yet.
  [[nodiscard]] bool silent() const { return handshake_bytes_.empty() && !has_hello_; }
  [[nodiscard]] Deadline::Clock::time_point since() const { return since_; }
  // The next whole message, after the handshake, which this advances. Throws kPeer.
  std::optional<Frame> next_frame();
  // To a client that has proved its rank.
  void send(const Frame& frame);
  // Writes what the socket takes; false if the connection has ended.
  bool flush();

  // The server's notes.
  bool member = false;   // has joined
  bool leaving = false;  // to be dropped once everything is sent
  bool gone = false;     // to be dropped

 private:
  bool advance_handshake();
  template <class Bytes>
  bool take(Bytes& bytes);

  Fd socket_;
  std::string address_;
  Handshake handshake_;
  Deadline join_by_;
  Deadline::Clock::time_point since_ = Deadline::Clock::now();
  bool has_hello_ = false;
  int rank_ = -1;
  std::string why_;
  std::string handshake_bytes_;        // received and not handled yet
  std::optional<Sealer> sealer_;       // after the handshake
  std::optional<FrameReader> reader_;  // after the handshake
  std::string outbox_;
  size_t sent_ = 0;  // bytes of outbox_ already written
};

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
