#include "kernels/cuda/elementwise.h"

#include <cmath>
#include <random>
#include <vector>

#include "lib/device/cuda_device.h"
#include "tests/catch.h"

namespace gxp {
namespace {

using namespace std::chrono_literals;
using Floats = std::vector<float>;

Floats normal(size_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> draw(0.0f, 2.0f);
  Floats values(count);
  for (float& value : values) value = draw(random);
  return values;
}

template <class F>
auto tensor_of(F& values) {
  const Shape shape{values.size()};
  if constexpr (std::is_const_v<F>) {
    return ConstTensor(memory_of(values), DType::kF32, shape);
  } else {
    return Tensor(memory_of(values), DType::kF32, shape);
  }
}

// The GPU's copy of some host values.
struct OnGpu {
  OnGpu(Device& device, Floats values)
      : host(std::move(values)),
        buffer(device.allocate(host.size() * sizeof(float), MemoryKind::kWorkspace)) {
    copy_cuda(buffer.memory(), memory_of(host));
  }
  [[nodiscard]] Tensor tensor() const { return {buffer.memory(), DType::kF32, Shape{host.size()}}; }
  const Floats& read() {
    copy_cuda(memory_of(host), buffer.memory());
    return host;
  }
  Floats host;
  Buffer buffer;
};

// The GPU's stream, and the CPU as its oracle.
struct Both {
  std::unique_ptr<Device> device = make_cuda_device(0);
  std::unique_ptr<Stream> stream = device->make_stream("compute");
  CudaElementwise cuda{*stream};
  ThreadPool pool{1};
  std::unique_ptr<Ops> cpu = make_cpu_ops(pool);
  void finish() { stream->synchronize(Deadline::after(30s)); }
};

// The largest |a - b| / max(1, |b|): the formulas are the same, but a GPU contracts a * b + c.
double distance(const Floats& a, const Floats& b) {
  REQUIRE(a.size() == b.size());
  double largest = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    const double away = std::abs(double(a[i]) - b[i]) / std::max(1.0, std::abs(double(b[i])));
    largest = std::max(largest, std::isnan(away) ? INFINITY : away);
  }
  return largest;
}

constexpr double kTolerance = 2e-6;

}  // namespace

TEST_CASE("the GPU's GELU is the CPU's") {
  Both both;
  const size_t count = GENERATE(0, 1, 255, 4099, 1000003);
  const Floats x = normal(count, 1);
  const OnGpu gpu_x(*both.device, x);
  OnGpu gpu_out(*both.device, Floats(count));
  Floats out(count);
  both.cuda.gelu_forward(gpu_out.tensor(), gpu_x.tensor());
  both.cpu->gelu_forward(tensor_of(out), tensor_of(x));
  both.finish();
  CHECK(distance(gpu_out.read(), out) < kTolerance);
}

TEST_CASE("the GPU's gradient of GELU is the CPU's, in place and not") {
  Both both;
  const bool in_place = GENERATE(false, true);
  const Floats x = normal(4099, 1);
  const Floats dout = normal(4099, 2);
  OnGpu gpu_x(*both.device, x);
  OnGpu gpu_dout(*both.device, dout);
  OnGpu other_dx(*both.device, Floats(4099));
  OnGpu other_activated(*both.device, Floats(4099));
  OnGpu& gpu_dx = in_place ? gpu_dout : other_dx;
  OnGpu& gpu_activated = in_place ? gpu_x : other_activated;
  Floats dx(4099);
  Floats activated(4099);
  both.cuda.gelu_backward(gpu_dx.tensor(), gpu_activated.tensor(), gpu_dout.tensor(),
                          gpu_x.tensor());
  both.cpu->gelu_backward(tensor_of(dx), tensor_of(activated), tensor_of(dout), tensor_of(x));
  both.finish();
  CHECK(distance(gpu_dx.read(), dx) < kTolerance);
  CHECK(distance(gpu_activated.read(), activated) < kTolerance);
}

TEST_CASE("the GPU's AdamW is the CPU's over several steps") {
  Both both;
  Floats weights = normal(4099, 1);
  Floats first(4099);
  Floats second(4099);
  OnGpu gpu_weights(*both.device, weights);
  OnGpu gpu_first(*both.device, first);
  OnGpu gpu_second(*both.device, second);
  for (int t = 1; t <= 5; ++t) {
    const Floats gradients = normal(4099, unsigned(t));
    const OnGpu gpu_gradients(*both.device, gradients);
    const AdamWStep step{1e-2, 0.9, 0.95, 1e-8, 0.1, t, 0.5};
    both.cuda.adamw(gpu_weights.tensor(), gpu_first.tensor(), gpu_second.tensor(),
                    gpu_gradients.tensor(), step);
    both.cpu->adamw(tensor_of(weights), tensor_of(first), tensor_of(second), tensor_of(gradients),
                    step);
    both.finish();
  }
  CHECK(distance(gpu_weights.read(), weights) < kTolerance);
  CHECK(distance(gpu_first.read(), first) < kTolerance);
  CHECK(distance(gpu_second.read(), second) < kTolerance);
}

TEST_CASE("the GPU fills every element") {
  Both both;
  OnGpu gpu(*both.device, normal(100001, 1));
  both.cuda.fill(gpu.tensor(), -1.5f);
  both.finish();
  CHECK(gpu.read() == Floats(100001, -1.5f));
}

}  // namespace gxp
