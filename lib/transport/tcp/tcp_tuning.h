// How many TCP connections two ranks have, how large the socket buffers are, and whether the OS
// may pace what is sent.
//
// The best settings differ between links, so two ranks of each class of pairs measure them: pairs
// on one host, and pairs on two hosts. Source of the candidates: one connection with the OS's
// buffers is best on loopback where BBR does not pace it (3.8 GB/s each way; 128 KiB: 2.2); several
// connections use several queues and CPUs on fast networks. Between two namespaces that a veth
// cable joins, BBR takes 142 ms for an all-reduce of 64 MiB, Reno 44 ms; on a slow link they are
// equal. So where the system would use BBR, that must win clearly to be taken.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "lib/transport/context.h"
#include "lib/transport/stream/mesh.h"

namespace gxp {

struct TcpTuning {
  int connections = 1;
  size_t buffer_bytes = 0;  // of each socket, each way; 0: as the OS sees fit
  bool paced = true;        // as the system's congestion control does; false: Reno, which does not
  bool operator==(const TcpTuning&) const = default;
};

// The tunings of pairs on one host and of pairs on two hosts.
struct TcpTunings {
  TcpTuning inside;
  TcpTuning between;
};

// One set of connections to the other ranks, with a name that no other set has.
struct TcpConnections {
  std::string name;
  bool paced = true;
};

// Connects this rank with those that `joins` names; by rank.
using ConnectTcp = std::function<std::vector<MeshConnection>(
    const TcpConnections& wanted, const std::function<bool(int peer)>& joins)>;

// All ranks call it and get the same, for the pairs that TCP `joins`. Takes what the options say,
// and tries out the rest; rank 0 logs what was found. Errors: kPeer.
// Cost: 14 connections between two ranks and some 20 ms for each class of pairs, inside a host
// half; at most about 1 s. Over a slow link (20 ms for 128 KiB) nothing is tried: one connection.
TcpTunings tune_tcp(const TransportContext& context, const JoinedPairs& joins,
                    const ConnectTcp& connect);

// Sets the socket's buffers; 0 leaves them to the OS.
void set_buffers(int socket, size_t bytes);

}  // namespace gxp
