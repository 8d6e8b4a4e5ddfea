// The CPU's streams: each is a thread with a queue (work_queue.h).
#pragma once

#include <memory>
#include <string_view>

#include "lib/device/stream.h"

namespace gxp {

//   Work       must end by itself: a run() that waits takes a Deadline of its own.
//   Events     record() and wait() of one event are not called at the same time. Only events of
//              make_cpu_event().
//   Destroying it skips the work that has not started, lets the rest end, and passes its events.
std::unique_ptr<Stream> make_cpu_stream(std::string_view name);
std::unique_ptr<Event> make_cpu_event();

}  // namespace gxp
