#include "lib/base/fd.h"

#include <sys/resource.h>

namespace gxp {

void raise_descriptor_limit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  (void)::setrlimit(RLIMIT_NOFILE, &limit);  // refused: it stays as it was
}

}  // namespace gxp
