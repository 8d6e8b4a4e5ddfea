// Operations that measure where the time of a step goes: marks in the stream around each call.
#pragma once

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "kernels/forwarded_ops.h"
#include "lib/program/step_program.h"
#include "lib/replay/kernel_work.h"
#include "lib/train/step/program_runner.h"

namespace gxp {

// Seconds of a step on this rank. On a GPU, a class includes gaps before its kernels only if the
// host does not keep the GPU busy.
struct ClassSeconds {
  std::array<double, kKernelClassNames.size()> classes{};  // of the compute lane, by KernelClass
  double waits = 0;                                        // of the compute lane, for other lanes
  double collectives = 0;                                  // in which the comm lane is busy
  [[nodiscard]] double sum() const;  // of all that the compute lane does, and its waits
};

// Passes every operation on, with the same arguments: results have the same bits. Calls are marked
// while the ProgramRunner that it observes carries out an operation of the compute lane; their
// class is class_of(). The streams outlive it.
//   Threads  as Ops, and as OpObserver.
class TimedOps final : public ForwardedOps<TimedOps>, public OpObserver {
 public:
  explicit TimedOps(std::unique_ptr<Ops> ops) : ops_(std::move(ops)) {}
  [[nodiscard]] std::string description() const override { return ops_->description(); }

  void begin(const Op& op, Stream& stream) override;
  void end(const Op& op) override;
  // The times of the runs since the last call. No run is under way.
  ClassSeconds take();

  template <class Result, class... Parameters, class... Given>
  Result carry_out(OpsCall call, Result (Ops::*operation)(Parameters...), const Given&... given) {
    start(call);
    if constexpr (std::is_void_v<Result>) {
      (ops_.get()->*operation)(given...);
      stop();
    } else {
      const Result result = (ops_.get()->*operation)(given...);
      stop();
      return result;
    }
  }
  void linear_backward(const LinearBackward& layer) override;
  void apply_all(std::span<const ElementwiseCall> calls) override;
  void adamw_packed(std::span<const PackedAdamW> calls) override;

 private:
  // Marks `first` and the one after it.
  struct Span {
    size_t first = 0;
    KernelClass of = KernelClass::kNorms;
  };
  struct OpMarks {
    size_t first = 0, last = 0;
    bool waits = false;  // for another lane
  };
  struct LaneTimes {
    Stream* stream = nullptr;
    std::vector<std::unique_ptr<TimeMark>> marks;
    size_t used = 0;  // of them, in this step
    std::vector<Span> calls;
    std::vector<OpMarks> ops;
  };
  static size_t mark(LaneTimes& lane);
  static double seconds(const LaneTimes& lane, size_t first, size_t last);
  [[nodiscard]] LaneTimes& compute() { return lanes_[size_t(Lane::kCompute)]; }
  void start(OpsCall call);
  void stop();

  const std::unique_ptr<Ops> ops_;
  std::array<LaneTimes, kLaneCount> lanes_;  // each used by its lane's thread
  const Op* op_ = nullptr;                   // of the compute lane, which is being carried out
  bool is_open_ = false;                     // whether the last call has no end yet
};

}  // namespace gxp
