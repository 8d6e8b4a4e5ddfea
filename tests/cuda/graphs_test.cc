// Operations that a GPU's stream repeats as graphs.
#include "kernels/cuda/table/cuda_ops.h"
#include "lib/device/cuda_device.h"
#include "tests/catch.h"
#include "tests/kernels/rotary.h"

namespace gxp {
namespace {

constexpr size_t kWidth = 64;
using HostFloats = std::vector<float>;

// Products and sums over an f32 matrix on the GPU, the sums as a stream repeats them.
class Graphs {
 public:
  // The column sums of x, added to those of before.
  bool repeat_sums() {
    return stream_->repeat(
        recording_, [this] { ops_->bias_backward(of(sums_, {kWidth}), x()); },
        WithoutRecording::kFail);
  }
  // The matrix turned, as rows of `positions`, by two lists of frequencies.
  bool repeat_turn() {
    return stream_->repeat(
        recording_,
        [this] {
          turn(kWidth / 4);
          turn(kWidth / 4, 5e5);
        },
        WithoutRecording::kFail);
  }
  void turn(size_t positions, double theta = 1e4) {
    ops_->rope_forward(of(x_, {kWidth / positions, positions, kWidth}), side_by_side(kWidth / 8, 8),
                       rotary_of(8, theta));
  }
  void multiply() { ops_->matmul(of(product_, {kWidth, kWidth}), x(), x(), {}); }
  void fill(float value) { ops_->fill(of(x_, {kWidth, kWidth}), value); }
  HostFloats sums() {
    stream_->finish(Deadline::after(std::chrono::seconds(30)));
    HostFloats host(kWidth);
    device_->copy(memory_of(host), sums_.memory());
    return host;
  }

 private:
  static Tensor of(const Buffer& buffer, const Shape& shape) {
    return {buffer.memory(), DType::kF32, shape};
  }
  ConstTensor x() const { return of(x_, {kWidth, kWidth}); }
  Buffer floats(size_t count) {
    return device_->allocate(count * sizeof(float), MemoryKind::kWorkspace);
  }

  std::unique_ptr<Device> device_ = make_cuda_device(0);
  std::unique_ptr<Stream> stream_ = device_->make_stream("compute");
  std::unique_ptr<Ops> ops_ = make_cuda_ops(*stream_, *device_);
  Buffer x_ = floats(kWidth * kWidth);
  Buffer product_ = floats(kWidth * kWidth);
  Buffer sums_ = floats(kWidth);
  std::unique_ptr<Recording> recording_;
};

}  // namespace

TEST_CASE("a graph reads its operands anew and is recorded again when scratch memory moves") {
  Graphs graphs;
  graphs.fill(1);
  CHECK_FALSE(graphs.repeat_sums());
  CHECK_FALSE(graphs.repeat_sums());
  CHECK(graphs.repeat_sums());
  graphs.fill(2);
  CHECK(graphs.repeat_sums());
  CHECK(graphs.sums() == HostFloats(kWidth, kWidth * (3 * 1 + 2)));
  graphs.multiply();  // needs more scratch memory than sums do
  for (const bool recorded : {false, false, true}) CHECK(graphs.repeat_sums() == recorded);
  CHECK(graphs.sums() == HostFloats(kWidth, kWidth * (3 * 1 + 4 * 2)));
}

TEST_CASE("a graph is recorded again when the table that it reads grows") {
  Graphs graphs;
  for (const bool recorded : {false, false, true}) CHECK(graphs.repeat_turn() == recorded);
  graphs.turn(kWidth);
  for (const bool recorded : {false, false, true}) CHECK(graphs.repeat_turn() == recorded);
}

}  // namespace gxp
