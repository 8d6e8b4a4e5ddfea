#include "tests/cuda/queued_cpu_ops.h"

#include <chrono>
#include <tuple>

#include "kernels/forwarded_ops.h"
#include "lib/device/cuda_check.h"
#include "lib/device/cuda_stream.h"
#include "tests/cuda/emulation/streams.h"
#include "tests/cuda/tensors_of.h"

namespace gxp {
namespace {

// The emulated GPU's memory is the host's, by another name.
template <class Argument>
Argument there(Argument argument) {
  for_tensors(argument, [](auto& tensor) {
    GXP_ASSERT(tensor.memory.data == nullptr || tensor.memory.space == MemorySpace::kCuda);
    tensor.memory.space = MemorySpace::kHost;
  });
  return argument;
}

class QueuedCpuOps final : public ForwardedOps<QueuedCpuOps> {
 public:
  explicit QueuedCpuOps(Stream& stream) : stream_(stream) {}
  [[nodiscard]] std::string description() const override { return "queued " + ops_->description(); }

  template <class Result, class... Parameters, class... Given>
  Result carry_out(OpsCall /*call*/, Result (Ops::*operation)(Parameters...),
                   const Given&... given) {
    const auto run = [this, operation, given = std::tuple(there(given)...)] {
      return std::apply([&](const auto&... each) { return (ops_.get()->*operation)(each...); },
                        given);
    };
    if constexpr (std::is_void_v<Result>) {
      check_cuda(emulation::enqueue(native_stream(stream_), run), "queue an operation");
    } else {
      Result result;
      check_cuda(emulation::enqueue(native_stream(stream_), [&] { result = run(); }),
                 "queue an operation");
      stream_.finish(Deadline::after(std::chrono::seconds(300)));
      return result;
    }
  }

  void adamw_packed(std::span<const PackedAdamW> calls) override {
    for (const PackedAdamW& call : calls)
      check_cuda(emulation::enqueue(native_stream(stream_),
                                    [this, here = there(call)] {
                                      ops_->adamw_packed({&here, 1});
                                    }),
                 "queue an update");
  }

 private:
  Stream& stream_;
  ThreadPool pool_{1};
  std::unique_ptr<Ops> ops_ = make_cpu_ops(pool_);
};

}  // namespace

std::unique_ptr<Ops> make_queued_cpu_ops(Stream& stream) {
  return std::make_unique<QueuedCpuOps>(stream);
}

}  // namespace gxp
