#include "lib/base/thread.h"

#include <string>
#include <vector>

#include "lib/base/bytes.h"
#include "lib/base/cgroup.h"
#include "lib/base/error.h"
#include "lib/base/resource_limits.h"
#include "lib/base/text/joined.h"

namespace gxp {
void fail_to_start(std::string_view what, int error_number) {
  std::vector<std::string> limits;
  if (const uint64_t user = process_limit(); user > 0)
    limits.push_back(fmt::format("{} for this user (ulimit -u)", user));
  if (const auto group = Cgroups().most_processes())
    limits.push_back(fmt::format("{} for its cgroup (pids.max, docker --pids-limit)", *group));
  if (const uint64_t bytes = address_space_limit(); bytes > 0)
    limits.push_back(fmt::format("address space of {} (ulimit -v)", format_bytes(bytes)));
  fail(ErrorKind::kIo, "start {}: {}; {}", what, system_text(error_number),
       limits.empty() ? "too many processes and threads run here; end some"
                      : fmt::format("the limits of processes and threads here: {}; raise them, or "
                                    "use fewer ranks or threads",
                                    joined(limits, ", ")));
}

}  // namespace gxp
