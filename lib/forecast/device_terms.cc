#include "lib/forecast/device_terms.h"

namespace gxp {
namespace {

// cuBLASLt's workspace (kernels/cuda/cublas_products.h), of the compute lane.
constexpr uint64_t kProductWorkspace = uint64_t{32} << 20;

// In half precision, the copy of a gradient of the residual stream that is multiplied.
uint64_t copied_stream(const RunPlan& plan, const RunConfig& config) {
  if (config.train.precision == "fp32") return 0;
  const uint64_t tokens = plan.shape.rows * plan.shape.positions;
  return tokens * uint64_t(config.model.hidden) * sizeof(uint16_t);
}

}  // namespace

size_t measured_width(bool on_gpu) { return on_gpu ? 4096 : 512; }

DeviceTerms terms_of_device(const RunConfig& config, const RunPlan& plan, bool on_gpu) {
  const uint64_t width = measured_width(on_gpu);
  DeviceTerms terms{.start_bytes = 3 * width * width * sizeof(float)};
  if (!on_gpu) return terms;
  terms.workspace_bytes = kProductWorkspace + copied_stream(plan, config);
  terms.holds_collectives = false;
  return terms;
}

}  // namespace gxp
