#include "lib/replay/hardware.h"

#include <array>

#include "lib/base/find_row.h"

namespace gxp {
namespace {

// Fitted to the public rows of the tables in docs/RESULTS.md, least squares of the logarithm of a
// step's time. Not fitted, for want of rows that tell them: flash attention (cuDNN's own benchmark
// on H200, forward and backward together) and NVLink's share (nccl-tests); fused blocks on Ampere,
// all that is not fused on Blackwell, where Hopper's stand; bf16 on Blackwell (its best product of
// 8192^3). What is said of gxp's own runs is measured on an H100 for Hopper's products and
// attention's backward (docs/RESULTS.md), and estimated for the rest: bytes in flight by a
// multiprocessor's loads, clocks under load.
// Blackwell's backward in any order is what NVIDIA measured (github.com/NVIDIA/cudnn-frontend,
// benchmark/sdpa_benchmark_training/results: llama3.1/gb200, bf16, causal, 64 heads of 128
// channels, 4096 positions).
constexpr Generation kAmpere = {
    .name = "ampere",
    .matmul_16 = 0.8636,
    .matmul_8 = 0.55,
    .half_width = 424.5,
    .attention_flash = 0.55,
    .attention_triton = 0.3183,
    .score_bytes = 15.65,
    .eager_bytes = 41.26,
    .eager_llama_bytes = 304.1,
    .fused_bytes = 35.0,
    .megatron_2021_bytes = 26.53,
    .fp8_bytes = 12.0,
    .head_bytes = 22.06,
    .host_s = 0.0004309,
    .step_s = 0.0076,
    .exposed = 0.4688,
    .tensor_exposed = 0.5,
    .link_share = 0.8,
    .network_share = 0.2339,
    .network_share_fsdp = 0.95,
    .network_share_2021 = 0.07879,
    .own_product = 0.8636,
    .own_half_width = 424.5,
    .pass_share = 0.75,
    .ordered_attention = 0.54,
    .any_order_attention = 0.6,  // as much more as Hopper
    .instructions_per_s = 108 * 128 * 1.41e9,
    .gap_s = 1.5e-6,
};

constexpr Generation kHopper = {
    .name = "hopper",
    .matmul_16 = 0.6894,
    .matmul_8 = 0.5672,
    .half_width = 269.5,
    .attention_flash = 0.55,
    .attention_triton = 0.1815,
    .score_bytes = 16.0,
    .eager_bytes = 50.29,
    .eager_llama_bytes = 276.2,
    .fused_bytes = 35.75,
    .megatron_2021_bytes = 35.0,
    .fp8_bytes = 31.96,
    .head_bytes = 56.17,
    .host_s = 0.001406,
    .step_s = 0.03985,
    .exposed = 0.3746,
    .tensor_exposed = 0.273,
    .link_share = 0.8,
    .network_share = 0.5583,
    .network_share_fsdp = 0.697,
    .network_share_2021 = 0.08,
    .own_product = 0.72,
    .own_product_8 = 0.65,
    .own_half_width = 55,
    .pass_share = 0.71,           // 3.4 TB/s of an H200's 4.8
    .ordered_attention = 0.6,     // cuDNN 9.19: 8.2 ms a step of 124M, 81 of the 8B layers
    .any_order_attention = 0.67,  // a ninth less
    .instructions_per_s = 132 * 128 * 1.8e9,
    .gap_s = 1.5e-6,
};

// What Blackwell has been measured at, on top of Hopper.
struct BlackwellRates {
  double matmul_8, half_width, fused_bytes, fp8_bytes, mxfp8_bytes, exposed, tensor_exposed;
};
constexpr Generation blackwell(std::string_view name, const BlackwellRates& rates) {
  Generation fitted = kHopper;
  fitted.name = name;
  fitted.matmul_16 = fitted.own_product = 0.75;
  fitted.matmul_8 = rates.matmul_8;
  fitted.own_product_8 = 0;
  fitted.half_width = fitted.own_half_width = rates.half_width;
  fitted.fused_bytes = rates.fused_bytes;
  fitted.fp8_bytes = rates.fp8_bytes;
  fitted.mxfp8_bytes = rates.mxfp8_bytes;
  fitted.exposed = rates.exposed;
  fitted.tensor_exposed = rates.tensor_exposed;
  fitted.network_share = fitted.network_share_fsdp = 0.5;
  fitted.any_order_attention = 0.83;  // 1148 TFLOP/s of a GB200's 2500
  fitted.instructions_per_s = 148 * 128 * 1.85e9;
  return fitted;
}
constexpr Generation kBlackwell =
    blackwell("blackwell", {0.4815, 121.3, 88.58, 10.8, 24.71, 0.3988, 0.4341});
constexpr Generation kBlackwellUltra =
    blackwell("blackwell-ultra", {0.591, 118.9, 46.94, 11.44, 18.13, 0.5264, 0.4311});

constexpr double kGB = 1e9;
constexpr double kTera = 1e12;

// Rates without sparsity: half of what data sheets show "with sparsity".
constexpr std::array kGpus = {
    // NVIDIA A100 data sheet 1758950-r4, SXM.
    Gpu{"a100-40gb", "NVIDIA A100-SXM4-40GB", &kAmpere, 312 * kTera, 0, 1.555 * kTera,
        40 * uint64_t{1 << 30}, 40},
    Gpu{"a100-80gb", "NVIDIA A100-SXM4-80GB", &kAmpere, 312 * kTera, 0, 2.039 * kTera,
        80 * uint64_t{1 << 30}, 80},
    // NVIDIA H100 data sheet, SXM.
    Gpu{"h100", "NVIDIA H100 80GB HBM3", &kHopper, 989 * kTera, 1979 * kTera, 3.35 * kTera,
        80 * uint64_t{1 << 30}, 80},
    // Memory and power: torchtitan, benchmarks/llama3_h100_202412_torchtitan.md.
    Gpu{"h100-96gb-500w", "", &kHopper, 989 * kTera, 1979 * kTera, 2.4 * kTera,
        95 * uint64_t{1 << 30}, 96, 500.0 / 700},
    // NVIDIA H200 data sheet, SXM.
    Gpu{"h200", "NVIDIA H200,", &kHopper, 989 * kTera, 1979 * kTera, 4.8 * kTera, 141'000'000'000,
        141},
    // An eighth of NVIDIA's DGX B200 data sheet; memory: 1,440 GB in the DGX B200 user guide.
    Gpu{"b200", "NVIDIA B200,", &kBlackwell, 2250 * kTera, 4500 * kTera, 8 * kTera, 180'000'000'000,
        180},
    // Half a superchip of NVIDIA's GB200 NVL72 data sheet; memory: MLPerf Inference 6.1's systems.
    Gpu{"gb200", "NVIDIA GB200,", &kBlackwell, 2500 * kTera, 5000 * kTera, 8 * kTera,
        186'000'000'000, 186},
    // NVIDIA's HGX B300 page; rates as the B200's.
    Gpu{"b300", "NVIDIA B300,", &kBlackwellUltra, 2250 * kTera, 4500 * kTera, 8 * kTera,
        288'000'000'000, 288},
    // NVIDIA's GB300 NVL72 page; rates as the GB200's.
    Gpu{"gb300", "NVIDIA GB300,", &kBlackwellUltra, 2500 * kTera, 5000 * kTera, 8 * kTera,
        288'000'000'000, 288},
};

consteval const Gpu* gpu(std::string_view name) {
  for (const Gpu& row : kGpus) {
    if (row.name == name) return &row;
  }
  throw "kGpus has no row of this name";  // in a constant expression: the compiler refuses it
}

// GPUs in a NVLink domain, and GB/s of NVLink, of the NIC and of the link to main memory.
constexpr Links join(int gpus, double nvlink, double network, double host) {
  return {gpus, nvlink * kGB, network * kGB, host * kGB};
}

// NVLink: half of what the GPUs' data sheets show for both directions. NICs: one for each GPU. To
// main memory: about four fifths of PCIe 4.0 x16 (31.5 GB/s) or 5.0 x16 (63 GB/s), and nine tenths
// of a GPU's half of a Grace superchip's NVLink-C2C (900 GB/s for both GPUs and directions).
constexpr std::array kHardware = {
    // The A100s of llm-foundry's scripts/train/benchmarking/README.md: 1.6 Tb/s RoCE a host.
    Hardware{"a100-40gb-roce", gpu("a100-40gb"), join(8, 300, 25, 25)},
    // NVIDIA DGX A100 user guide DU-09821-001: 8 ConnectX-6 of 200 Gb/s.
    Hardware{"dgx-a100", gpu("a100-80gb"), join(8, 300, 25, 25)},
    // NVIDIA DGX H100/H200 user guide: 8 ConnectX-7 of 400 Gb/s.
    Hardware{"dgx-h100", gpu("h100"), join(8, 450, 50, 50)},
    // As its GPU: 400 Gb/s RDMA for each.
    Hardware{"h100-96gb-500w", gpu("h100-96gb-500w"), join(8, 450, 50, 50)},
    Hardware{"dgx-h200", gpu("h200"), join(8, 450, 50, 50)},
    // NVIDIA DGX B200 user guide: 8 ConnectX-7; 14.4 TB/s of NVLink for 8 GPUs.
    Hardware{"dgx-b200", gpu("b200"), join(8, 900, 50, 50)},
    // NVIDIA GB200 NVL72 data sheet: ConnectX-7; 72 GPUs are a domain. The published runs, whose
    // sizes are powers of two, use 64 of them (tests/data/plan).
    Hardware{"dgx-gb200", gpu("gb200"), join(64, 900, 50, 200)},
    // NVIDIA DGX B300 and GB300 NVL72 pages: ConnectX-8 of 800 Gb/s.
    Hardware{"dgx-b300", gpu("b300"), join(8, 900, 100, 50)},
    Hardware{"dgx-gb300", gpu("gb300"), join(64, 900, 100, 200)},
};

constexpr std::array kSoftwares = {
    // Megatron-Core and NeMo: fused, tensor parallelism overlapped.
    Software{"megatron", Elementwise::kFused, Attention::kFlash, true, false, false,
             ShardBuffers::kUnits, 6},
    // PyTorch FSDP2, compiled, as torchtitan.
    Software{"fsdp", Elementwise::kFused, Attention::kFlash, false, true, false,
             ShardBuffers::kFsdp2, 14},
    // The same with asynchronous tensor parallelism.
    Software{"fsdp-async-tp", Elementwise::kFused, Attention::kFlash, true, true, false,
             ShardBuffers::kFsdp2, 14},
    // The same, not compiled.
    Software{"fsdp-eager", Elementwise::kEager, Attention::kFlash, false, true, false,
             ShardBuffers::kFsdp2, 14},
    // MosaicML's MPT of 2023: FSDP, not compiled, attention in Triton.
    Software{"llm-foundry", Elementwise::kEager, Attention::kTriton, false, true, false,
             ShardBuffers::kUnits, 6},
    // Megatron-LM before flash attention.
    Software{"megatron-2021", Elementwise::kMegatron2021, Attention::kStored, false, false, false,
             ShardBuffers::kUnits, 6},
    // DeepSpeed's ZeRO-3 as Megatron-LM's authors measured it.
    Software{"deepspeed-2021", Elementwise::kMegatron2021, Attention::kStored, false, false, true,
             ShardBuffers::kDeepSpeed, 6},
};

}  // namespace

std::span<const Gpu> gpus() { return kGpus; }
std::span<const Hardware> hardware_table() { return kHardware; }
std::span<const Software> softwares() { return kSoftwares; }

const Gpu& find_gpu(std::string_view name) { return find_row(kGpus, name, "--gpu"); }

const Hardware& find_hardware(std::string_view name) {
  return find_row(kHardware, name, "--cluster");
}

const Software& find_software(std::string_view name) {
  return find_row(kSoftwares, name, "--software");
}

const Gpu* find_gpu_of_device(std::string_view description) {
  for (const Gpu& gpu : kGpus) {
    const bool is_known = !gpu.driver_name.empty();
    if (is_known && description.find(gpu.driver_name) != std::string_view::npos) return &gpu;
  }
  return nullptr;
}

}  // namespace gxp
