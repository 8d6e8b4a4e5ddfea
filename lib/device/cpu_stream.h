// The CPU's streams: each is a thread with a queue.
//
// A point in a stream's order is a number: how many entries were queued before it. An event is such
// a number and the stream it counts in, so recording one queues nothing, and waiting for one means
// waiting until that stream has finished so many entries. Waits refer to points that were queued
// before, so streams can never wait for each other in a circle.
#pragma once

#include <memory>
#include <string_view>

#include "lib/device/stream.h"

namespace gxp {

// The thread is named after the stream (the first 15 letters) and logs for the caller's rank.
//   Work       must end by itself: a run() that waits takes a Deadline of its own.
//   Events     record() and wait() of one event are not called at the same time. Only events of
//              make_cpu_event().
//   Destroying it skips the work that has not started, lets the rest end, and passes its events.
//   Cost       a mutex per call; nothing is allocated once the queue has had its longest length.
std::unique_ptr<Stream> make_cpu_stream(std::string_view name);
std::unique_ptr<Event> make_cpu_event();

}  // namespace gxp
