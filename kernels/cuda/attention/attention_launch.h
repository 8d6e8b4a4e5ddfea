// Launches of the attention kernels: of whole rows two ways to compute the same, whose sums have an
// order of their own each.
#pragma once

#include <cuda_runtime_api.h>

#include "kernels/attention_args.h"
#include "kernels/cuda/gpu_stream.h"

namespace gxp {

// args.delta = row sums of dout * out, which both backward passes read.
cudaError_t launch_attention_delta(const GpuStream& stream, const AttentionBackward& args);

// Multiplied in f32: any type, any head size.
cudaError_t launch_plain_attention_forward(cudaStream_t stream, const AttentionForward& args);
cudaError_t launch_plain_attention_backward(cudaStream_t stream, const AttentionBackward& args);

// Of cached keys and values: any type, any head size.
cudaError_t launch_cached_attention(cudaStream_t stream, const AttentionCached& args);

// Multiplied on tensor cores: bf16 or f16 heads of some sizes, whose arrays all begin at a multiple
// of 16 bytes.
bool mma_attention_takes(DType dtype, size_t head_size);
cudaError_t launch_mma_attention_forward(cudaStream_t stream, const AttentionForward& args);
cudaError_t launch_mma_attention_backward(cudaStream_t stream, const AttentionBackward& args);

}  // namespace gxp
