// The name of this host.
#pragma once

#include <string>

namespace gxp {

// gethostname(); "" if the system does not say.
std::string host_name();

}  // namespace gxp
