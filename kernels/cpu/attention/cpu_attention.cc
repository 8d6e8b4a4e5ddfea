#include "kernels/cpu/attention/cpu_attention.h"

namespace gxp {

void CpuAttention::attend(const AttentionForward& args) {
  buffers_.parallel_for(args.shape.batch * args.shape.heads, attention_scratch_floats(args.shape),
                        [&](size_t begin, size_t end, float* scratch) {
                          for (size_t pair = begin; pair < end; ++pair)
                            kernels_.forward(args, pair, scratch);
                        });
}

void CpuAttention::attend(const AttentionCached& args) {
  buffers_.parallel_for(args.shape.batch * args.shape.heads, cached_scratch_floats(args),
                        [&](size_t begin, size_t end, float* scratch) {
                          for (size_t pair = begin; pair < end; ++pair)
                            kernels_.cached(args, pair, scratch);
                        });
}

void CpuAttention::attend(const AttentionBackward& args) {
  buffers_.parallel_for(args.shape.batch * args.shape.kv_heads,
                        attention_scratch_floats(args.shape),
                        [&](size_t begin, size_t end, float* scratch) {
                          for (size_t group = begin; group < end; ++group)
                            kernels_.backward(args, group, scratch);
                        });
}

}  // namespace gxp
