// CUDA's streams and events behind Stream and Event.
#pragma once

#include <cuda_runtime_api.h>

#include <memory>
#include <string_view>

#include "lib/device/stream.h"

namespace gxp {

// Both are of GPU `index`; a stream waits for no other (cudaStreamNonBlocking).
std::unique_ptr<Stream> make_cuda_stream(int index, std::string_view name);
std::unique_ptr<Event> make_cuda_event(int index);

// Where kernels that belong to a Work of `stream` are launched; also makes the stream's GPU the
// calling thread's. `stream` is of make_cuda_stream().
cudaStream_t native_stream(Stream& stream);

}  // namespace gxp
