// CUDA's streams and events as Stream and Event: a stream is a thread with a queue
// (work_queue.h) that starts kernels on a cudaStream_t.
#pragma once

#include <cuda_runtime_api.h>

#include <memory>
#include <string_view>

#include "lib/device/stream.h"

namespace gxp {

// An urgent stream's blocks are the first that get a multiprocessor that becomes free.
enum class StreamPriority : uint8_t { kNormal, kUrgent };

// Both are of GPU `index`; a stream waits for no other (cudaStreamNonBlocking). Events outlive the
// works that use them.
std::unique_ptr<Stream> make_cuda_stream(int index, std::string_view name,
                                         StreamPriority priority = StreamPriority::kNormal);
std::unique_ptr<Event> make_cuda_event(int index);

// Where kernels that belong to a Work of `stream` are launched, by that Work or by the caller while
// nothing is queued; also makes the stream's GPU the calling thread's. `stream` comes from
// make_cuda_stream().
cudaStream_t native_stream(Stream& stream);

// Discards the recordings of `stream`: memory that their kernels' arguments point to is about to be
// freed. Called like native_stream(), but not while recording.
void forget_recordings(Stream& stream);

}  // namespace gxp
