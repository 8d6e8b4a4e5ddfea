// How a command's ranks are started, as options of its command line.
#pragma once

#include "lib/job/join.h"

namespace CLI {
class App;
}

namespace gxp {

// --nproc --nnodes --node-rank --master --no-bind --join-timeout
void add_launch_options(CLI::App& app, LaunchRequest& request);

}  // namespace gxp
