#include "lib/base/resource_limits.h"

#include <sys/resource.h>

namespace gxp {
namespace {

uint64_t limit_of(__rlimit_resource_t resource) {
  rlimit limit{};
  const bool limited = getrlimit(resource, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY;
  return limited ? limit.rlim_cur : 0;
}

}  // namespace

uint64_t address_space_limit() { return limit_of(RLIMIT_AS); }
uint64_t file_size_limit() { return limit_of(RLIMIT_FSIZE); }
uint64_t process_limit() { return limit_of(RLIMIT_NPROC); }

}  // namespace gxp
