// The address at which other hosts can probably reach this host.
#pragma once

#include <string>

namespace gxp {

// A numeric address of this host: the one its name has in the name service, if it is not loopback
// (as where /etc/hosts says 127.0.1.1); else that of the interface which the default route takes;
// else that of the first other interface; else 127.0.0.1. May wait for the name service.
std::string own_address();

}  // namespace gxp
