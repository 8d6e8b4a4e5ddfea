#include "lib/train/leave.h"

#include <unistd.h>

#include <cstdio>
#include <string>

#include "lib/base/error.h"
#include "lib/base/log.h"

namespace gxp {
namespace {

struct Ending {
  std::string message;
  int code;
};

Ending ending_of(const std::exception_ptr& cause) {
  try {
    if (cause != nullptr) std::rethrow_exception(cause);
    return {"run a step: it could not be queued as a whole", exit_code(ErrorKind::kDevice)};
  } catch (const Error& error) {
    return {error.what(), exit_code(error.kind())};
  } catch (const std::exception& error) {
    return {std::string(error.what()) + "; this is a bug in gxp", exit_code(ErrorKind::kInternal)};
  }
}

[[noreturn]] void leave(const std::exception_ptr& cause, const std::string& stuck) {
  const Ending ending = ending_of(cause);
  log_error("leave the run, which has failed, without waiting any longer: {}", stuck);
  std::fprintf(stderr, "gxp: error: %s\n", ending.message.c_str());
  std::fflush(nullptr);
  ::_exit(ending.code);
}

}  // namespace

void settle_or_leave(std::span<Stream* const> streams, Deadline deadline,
                     const std::exception_ptr& cause) {
  for (Stream* stream : streams) {
    if (stream == nullptr) continue;
    try {
      stream->synchronize(deadline);
    } catch (const std::exception& error) {
      if (deadline.expired()) leave(cause, error.what());
    }
  }
}

}  // namespace gxp
