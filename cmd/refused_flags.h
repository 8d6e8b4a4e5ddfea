// Flags of nccl-tests that have no meaning on CPUs. Each is refused by name with the reason, unless
// its value says that it is off; no help lists them.
#pragma once

namespace CLI {
class App;
}

namespace gxp {

void add_refused_flags(CLI::App& app);

}  // namespace gxp
