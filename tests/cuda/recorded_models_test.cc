// Models that only name a directory of tests/data/models, on a GPU or an emulated one, next to what
// transformers and PEFT have recorded.
#include "lib/train/step/cuda_backend.h"
#include "tests/train/recorded_runs.h"

namespace gxp {
namespace {

Backend make_gpu(const TrainConfig& config) {
  TrainConfig uncached = config;
  uncached.gemm_cache = "off";
  return make_cuda_backend(0, uncached, 1);
}

}  // namespace

// Between them: windows, caps, scales, partial rotary positions, fused projections and adapters.
TEST_CASE("a model has its library's logits and steps on a GPU, in every precision") {
  const auto [name, precision] =
      GENERATE(table<std::string, std::string>({{"gemma2", "bf16"},
                                                {"phi3", "fp16"},
                                                {"granite-untied-bias", "bf16"},
                                                {"qwen3-lora-all", "fp32"}}));
  check_precision(name, precision, make_gpu);
}

TEST_CASE("every model has its library's logits and steps on a GPU, in every precision",
          "[.long]") {
  const std::string name = GENERATE(from_range(kTrainedModels), from_range(kTrainedAdapters));
  const std::string precision = GENERATE("fp32", "bf16", "fp16");
  check_precision(name, precision, make_gpu);
}

}  // namespace gxp
