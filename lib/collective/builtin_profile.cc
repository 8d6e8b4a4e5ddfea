#include "lib/collective/profile.h"

namespace gxp {
namespace {

// Measured by gxp allreduce-test --calibrate on the machine named there.
constexpr std::string_view kBuiltin = R"(
[machine]
version = 1
cpu = "Intel(R) Xeon(R) Processor"
cores = 2
kernel = "6.18"

[shm-2]
transport = "shm"
ranks = 2
hosts = 1
hop = ["8 2e-07", "4096 1e-06", "65536 8e-06", "1048576 0.00012", "16777216 0.003"]
start = ["8 1e-7"]
swap = ["8 3e-7"]
exchange = ["8 3e-07", "4096 1.5e-06", "65536 1.6e-05", "1048576 0.00024", "16777216 0.006"]
fold = ["8 1e-09", "4096 1e-07", "65536 2e-06", "1048576 5e-05", "16777216 0.001"]
fold-later = ["8 1e-08", "4096 1e-07", "65536 2e-06", "1048576 5e-05", "16777216 0.002"]
copy = ["8 1e-08", "4096 1e-07", "65536 2e-06", "1048576 5e-05", "16777216 0.002"]

[tcp-2]
transport = "tcp"
ranks = 2
hosts = 1
hop = ["8 5e-06", "4096 8e-06", "65536 3e-05", "1048576 0.0003", "16777216 0.008"]
start = ["8 1e-7"]
swap = ["8 3e-7"]
exchange = ["8 8e-06", "4096 1e-05", "65536 5e-05", "1048576 0.0006", "16777216 0.015"]
fold = ["8 1e-09", "4096 1e-07", "65536 2e-06", "1048576 5e-05", "16777216 0.001"]
fold-later = ["8 1e-08", "4096 1e-07", "65536 2e-06", "1048576 5e-05", "16777216 0.002"]
copy = ["8 1e-08", "4096 1e-07", "65536 2e-06", "1048576 5e-05", "16777216 0.002"]

[tcp-2-hosts]
transport = "tcp"
ranks = 2
hosts = 2
exchange = ["8 3e-05", "65536 9e-05", "1048576 0.001", "16777216 0.015"]
)";

}  // namespace

const Profile& builtin_profile() {
  static const Profile profile = parse_profile(kBuiltin, "built in");
  return profile;
}

}  // namespace gxp
