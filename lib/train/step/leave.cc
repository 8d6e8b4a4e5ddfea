#include "lib/train/step/leave.h"

#include <unistd.h>

#include <cstdio>
#include <string>

#include "lib/base/error.h"
#include "lib/base/log.h"

namespace gxp {
namespace {

[[noreturn]] void leave(std::exception_ptr cause, const std::string& stuck) {
  if (cause == nullptr)
    cause = std::make_exception_ptr(
        Error(ErrorKind::kDevice, "run a step: only a part of it could be queued"));
  const Ending ending = ending_of(cause);
  log_error("end the failed run without waiting any longer: {}", stuck);
  std::fputs(ending.line.c_str(), stderr);
  std::fflush(nullptr);
  ::_exit(ending.code);
}

}  // namespace

void settle_or_leave(std::span<Stream* const> streams, Deadline deadline,
                     const std::exception_ptr& cause) {
  for (Stream* stream : streams) {
    if (stream == nullptr) continue;
    if (const auto stuck = stream->settle(deadline)) leave(cause, *stuck);
  }
}

}  // namespace gxp
