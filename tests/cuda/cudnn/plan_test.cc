// The graphs of attention, planned by the cuDNN that is here for GPUs that are not: cuDNN makes
// plans from a GPU's properties alone, and the driver next to this test takes what it compiles.
#include <cstdio>
#include <optional>
#include <string_view>

#include "kernels/cuda/cudnn/cudnn_attention_graph.h"
#include "kernels/cuda/cudnn/cudnn_library.h"
#include "kernels/cudnn_workspace.h"

#if __has_include(<catch2/catch_session.hpp>)
#include <catch2/catch_session.hpp>
#else
#define CATCH_CONFIG_RUNNER
#include <catch2/catch.hpp>
#endif

namespace gxp {
namespace {

struct Gpu {
  const char* name;
  int capability, multiprocessors, shared_memory, l2_bytes;
  int64_t memory;
};

constexpr Gpu kA100 = {"NVIDIA A100-SXM4-80GB", 800, 108, 166912, 41943040, 85094236160};
constexpr Gpu kH100 = {"NVIDIA H100 80GB HBM3", 900, 132, 232448, 52428800, 85045542912};
constexpr Gpu kB200 = {"NVIDIA B200", 1000, 148, 232448, 132644864, 191514017792};

// As cuDNN writes the properties of a GPU.
std::string json_of(const Gpu& gpu) {
  return fmt::format(
      R"({{"deviceName": "{}", "deviceVer": {}, "multiProcessorCount": {},
"maxSharedMemoryPerBlockOptin": {}, "l2CacheSize": {}, "totalGlobalMem": {},
"maxGridSize": [2147483647, 65535, 65535], "maxBlockSize": [1024, 1024, 64],
"regsPerBlock": 65536, "warpSize": 32, "maxSharedMemoryPerBlock": 49152,
"reservedSharedMemoryPerBlock": 1024, "maxRegistersPerSM": 65536, "maxCtasPerSM": 32,
"maxThreadsPerBlock": 1024, "maxThreadsPerSM": 2048, "isTccDriver": 0, "supportCoopLaunch": 1,
"cudaDeviceId": 0, "pciDeviceId": 0, "driverVer": 13000, "smClockRateKHz": 1410000,
"memClockRateKHz": 1593000}})",
      gpu.name, gpu.capability, gpu.multiprocessors, gpu.shared_memory, gpu.l2_bytes, gpu.memory);
}

struct Planned {
  Support support;
  size_t workspace_bytes;
};

using Describe = void (*)(CudnnGraph&, const CudnnAttentionShape&);

// In at most the workspace that is counted, or `most`.
Planned plan(const Gpu& gpu, Describe describe, const CudnnAttentionShape& shape,
             std::optional<size_t> most = {}) {
  const CudnnFunctions& functions = cudnn_library().functions;
  const std::string json = json_of(gpu);
  CudnnObjects objects(functions);
  const CudnnObjects::Value value = {CudnnAttribute::kDeviceJson, CudnnType::kChar,
                                     int64_t(json.size()), json.data()};
  void* const properties = objects.make(CudnnObject::kDeviceProperties, {&value, 1});
  REQUIRE(objects.refusal().empty());
  CudnnGraph graph(functions, {.properties = properties});
  describe(graph, shape);
  const size_t counted =
      cudnn_workspace_bytes(shape.heads, shape.order) - cudnn_sum_bytes(shape.heads, shape.order);
  const Support support = graph.plan(most.value_or(counted), shape.order);
  return {support, graph.workspace_bytes()};
}

// Side by side in one array where no heads are grouped.
CudnnAttentionShape shape_of(const AttentionShape& heads, DType dtype,
                             SumOrder order = SumOrder::kFixed) {
  const HeadStrides outs = strides_of_outs(heads);
  const auto size = uint32_t(heads.head_size), narrow = uint32_t(heads.kv_heads) * size;
  if (heads.heads == heads.kv_heads)
    return {heads, {3 * outs.row, size}, {3 * outs.row, size}, outs, dtype, order};
  return {heads, outs, {narrow, size}, outs, dtype, order};
}

TEST_CASE("cuDNN has plans for attention, in a fixed order or any, in the workspace counted") {
  const Gpu gpu = GENERATE(kA100, kH100, kB200);
  const auto [heads, dtype] = GENERATE(
      table<AttentionShape, DType>({{{16, 1024, 12, 12, 64}, DType::kBF16},  // GPT-2 124M
                                    {{1, 8192, 4, 1, 128}, DType::kBF16},    // a slice of Llama
                                    {{3, 1023, 5, 5, 96}, DType::kF16},
                                    {{2, 65, 4, 2, 64}, DType::kF16},
                                    {{1, 1, 2, 1, 8}, DType::kBF16}}));
  const SumOrder order = GENERATE(SumOrder::kFixed, SumOrder::kAny);
  CAPTURE(gpu.name, to_string(dtype), heads.positions, heads.heads, heads.kv_heads, order);
  const CudnnAttentionShape shape = shape_of(heads, dtype, order);
  const Planned forward = plan(gpu, describe_attention_forward, shape);
  const Planned backward = plan(gpu, describe_attention_backward, shape);
  CHECK(forward.support.reason == "");
  CHECK(backward.support.reason == "");
  CHECK(forward.workspace_bytes <= 256);
}

TEST_CASE("on an H100 and a B200, cuDNN keeps nothing but the sums in any order") {
  const Gpu gpu = GENERATE(kH100, kB200);
  const AttentionShape gpt2 = {16, 1024, 12, 12, 64};
  const auto backward = [&](SumOrder order) {
    return plan(gpu, describe_attention_backward, shape_of(gpt2, DType::kBF16, order))
        .workspace_bytes;
  };
  CHECK(backward(SumOrder::kAny) <= 256);
  CHECK(backward(SumOrder::kFixed) >= 2 * size_t{16} * 12 * 1024 * 1024);
}

TEST_CASE("cuDNN's refusals are said, not thrown") {
  const auto backward = [](const Gpu& gpu, size_t head_size, size_t most) {
    return plan(gpu, describe_attention_backward, shape_of({1, 128, 2, 2, head_size}, DType::kBF16),
                most)
        .support.reason;
  };
  CHECK(backward(kH100, 256, size_t{1} << 30) == "");
  CHECK_THAT(backward(kA100, 256, size_t{1} << 30), Catch::Contains("no engine"));
  CHECK_THAT(backward(kH100, 64, 1000), Catch::Contains("of workspace, of 1000"));
}

}  // namespace
}  // namespace gxp

int main(int argc, char** argv) {
  if (const gxp::Support& support = gxp::cudnn_library().support; !support) {
    std::printf("skipped: %s\n", support.reason.c_str());
    return 77;
  }
  return Catch::Session().run(argc, argv);
}
