#include "lib/base/standard_streams.h"

#include <fcntl.h>
#include <unistd.h>

namespace gxp {

void open_standard_streams() {
  for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; ++fd) {
    if (::fcntl(fd, F_GETFD) >= 0) continue;
    // The lowest number that is free, which is this one.
    const int opened = ::open("/dev/null", fd == STDERR_FILENO ? O_WRONLY : O_RDONLY);
    if (opened != fd) ::_exit(4);  // kIo; there is nowhere to say why
  }
}

}  // namespace gxp
