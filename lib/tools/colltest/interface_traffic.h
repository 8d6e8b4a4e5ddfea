// Which network interface of this host carried something: by the OS's counters.
#pragma once

#include <cstdint>
#include <map>
#include <string>

namespace gxp {

using InterfaceBytes = std::map<std::string, uint64_t>;

// Bytes sent by each interface of this network namespace so far; empty where the OS does not
// say.
InterfaceBytes sent_by_interface();
// The interface that has sent most since then, if that is at least `bytes`; else "". Not the
// loopback device, which is no link.
std::string busiest_interface(const InterfaceBytes& before, uint64_t bytes);
// Bytes of the largest packet that it sends, without the Ethernet header; 0: unknown.
int mtu_of_interface(const std::string& name);

}  // namespace gxp
