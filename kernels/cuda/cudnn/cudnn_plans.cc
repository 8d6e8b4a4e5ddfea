#include "kernels/cuda/cudnn/cudnn_plans.h"

#include <fmt/format.h>

#include "kernels/cuda/cudnn/cudnn_library.h"
#include "kernels/cudnn_workspace.h"
#include "lib/device/cuda_check.h"

namespace gxp {
namespace {

struct PlansOfProcess {
  std::mutex mutex;
  std::map<int, std::shared_ptr<CudnnPlans>> by_gpu;  // under mutex
};

PlansOfProcess& plans_of_process() {
  static auto& plans = *new PlansOfProcess;
  return plans;
}

}  // namespace

CudnnPlans::CudnnPlans(const CudnnFunctions& functions)
    : functions_(functions), handle_(nullptr, functions.destroy) {
  CudnnContext* created = nullptr;
  const CudnnStatus status = functions.create(&created);
  handle_.reset(created);
  if (status != kCudnnSuccess)
    started_ = {false, fmt::format("start cuDNN {}: {}", cudnn_version_name(functions.version()),
                                   functions.error_string(status))};
}

CudnnPlan& CudnnPlans::plan(CudnnDirection direction, const CudnnAttentionShape& shape) {
  const std::scoped_lock lock(mutex_);
  const auto [found, is_new] = plans_.try_emplace(
      {direction, shape}, CudnnGraph(functions_, {.handle = handle_.get()}), Support{});
  CudnnPlan& plan = found->second;
  if (!is_new) return plan;
  if (direction == CudnnDirection::kForward)
    describe_attention_forward(plan.graph, shape);
  else
    describe_attention_backward(plan.graph, shape);
  const size_t most = cudnn_workspace_bytes(shape.heads, shape.order);
  plan.support = plan.graph.plan(most - cudnn_sum_bytes(shape.heads, shape.order), shape.order);
  return plan;
}

void CudnnPlans::run(CudnnPlan& plan, std::span<const CudnnGraph::TensorBinding> bindings,
                     void* workspace, cudaStream_t stream) {
  const std::scoped_lock lock(mutex_);
  if (const CudnnStatus status = functions_.set_stream(handle_.get(), stream);
      status != kCudnnSuccess)
    fail(ErrorKind::kDevice, "give a stream to cuDNN: {}", functions_.error_string(status));
  plan.graph.run(bindings, workspace);
}

std::shared_ptr<CudnnPlans> cudnn_plans(const CudnnFunctions& functions) {
  int gpu = 0;
  check_cuda(cudaGetDevice(&gpu), "ask which GPU is current");
  PlansOfProcess& all = plans_of_process();
  const std::scoped_lock lock(all.mutex);
  if (const auto found = all.by_gpu.find(gpu); found != all.by_gpu.end()) return found->second;
  const auto made = std::make_shared<CudnnPlans>(functions);
  if (made->started()) all.by_gpu[gpu] = made;
  return made;
}

void forget_cudnn_plans() {
  PlansOfProcess& all = plans_of_process();
  const std::scoped_lock lock(all.mutex);
  all.by_gpu.clear();
}

}  // namespace gxp
