// Polls a vendor library until its call ends, another thread aborts it, or time is up.
#pragma once

#include <chrono>
#include <string_view>

#include "lib/base/deadline.h"
#include "lib/base/error.h"
#include "lib/transport/abort_flag.h"
#include "lib/transport/backoff.h"

namespace gxp {

// Returns when done(): tests it until then, since `library` makes progress only while it is called,
// and other ranks may need this core. Exceptions of done() are passed on.
//   Threads  only the one that may call the library; any thread may set the flag.
//   Errors   kPeer: the deadline has passed, or the flag is set, whose reason is the message.
template <class Done>
void wait_for_ranks(std::string_view library, const AbortFlag& aborted, const Done& done,
                    Deadline deadline) {
  Backoff backoff(false, std::chrono::hours(1));
  while (!done()) {
    aborted.check();
    if (deadline.expired())
      fail(ErrorKind::kPeer,
           "wait for the other ranks in {0}: not done after {1:g} s; {0} does not report which "
           "rank is late, lost or in a different call",
           library, deadline.seconds());
    if (!backoff.keep_awake()) yield_cpu();
  }
}

}  // namespace gxp
