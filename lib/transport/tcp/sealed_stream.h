// Bytes to and from one peer over TCP, in sealed records (lib/net/socket/seal.h).
//
// Sending: the first record of a message holds its header and up to 8 KiB of it, copied together;
// the others are up to 64 KiB of the user's span, sent from there unless they are encrypted. Bytes
// count as taken when the whole record has been handed to the OS, so a completed send needs no
// further progress calls. Receiving: a record is read whole into memory of this stream, checked,
// and only then handed on, to the user's span or to the combiner: nothing unchecked reaches either.
// One that fails the check is thrown as Tampered by read_some() and deliver_some(). The records of
// several connections are one sequence under the keys of the first, so it does not matter over
// which of them a byte came. Memory: up to 136 KiB per peer. Cost: bench/transport_bench.cc,
// docs/RESULTS.md.
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "lib/net/socket/seal.h"
#include "lib/transport/context.h"
#include "lib/transport/stream/byte_stream.h"
#include "lib/transport/stream/mesh.h"
#include "lib/transport/tcp/tcp_stream.h"

namespace gxp {

class SealedStream : public ByteStream {
 public:
  // `what`: what is received here, as Tampered names it. `protection` is not kNone.
  SealedStream(std::unique_ptr<TcpStream> carrier, const SealKeys& keys, Protection protection,
               std::string what);

  // What has not been taken must be offered again, from where it is, until it has been.
  size_t write_some(ConstMemory head, ConstMemory body) override;
  size_t read_some(Memory target) override;
  size_t deliver_some(PendingMessage& receive) override;
  std::string_view closed() const override { return carrier_->closed(); }
  void shut_down() noexcept override { carrier_->shut_down(); }

 private:
  // The record that is leaving.
  struct OutgoingRecord {
    RecordHeader header{};
    ConstMemory body;
    size_t taken = 0;  // of header and body
    bool under_way = false;
  };

  void seal_next(ConstMemory head, ConstMemory body);
  bool push_record();
  bool has_opened();
  ConstMemory take_opened(size_t most);

  std::unique_ptr<TcpStream> carrier_;
  Protection protection_;
  std::string what_;
  Sealer sealer_;
  Opener opener_;
  OutgoingRecord leaving_;
  std::vector<std::byte> staged_;  // the body of leaving_ where it is not the user's
  RecordHeader header_{};          // of the record that arrives
  size_t header_read_ = 0;
  std::vector<std::byte> arrived_;
  size_t body_bytes_ = 0;
  size_t body_read_ = 0;
  size_t opened_ = 0;  // bytes of arrived_ that are checked
  size_t handed_ = 0;  // and handed on
};

// The stream over the connections to one peer that context.tcp.protect asks for, and the sockets
// under it, which it owns.
struct TcpPeer {
  std::unique_ptr<ByteStream> stream;
  TcpStream* sockets = nullptr;
};
TcpPeer make_tcp_peer(std::vector<MeshConnection> connections, const TransportContext& context,
                      int peer, TcpCommon& common);

}  // namespace gxp
