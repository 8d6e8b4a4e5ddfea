// DeepSpeed's estimators. Numbers are doubles as in the Python of the original, truncated to whole
// bytes where the original truncates.
#include <fmt/format.h>

#include <algorithm>

#include "lib/tools/planner/compatibility.h"

namespace gxp {
namespace {

constexpr double kGib = 1 << 30;
constexpr double kBufferFactor = 1.5;  // additional_buffer_factor

// Bytes with their formula.
struct Need {
  double bytes = 0;
  std::string formula;
  std::string numbers;
};

// The estimators' inputs, under the letters of their formulas.
struct Setup {
  double parameters;     // P
  double largest_layer;  // L
  double gpus_per_host;  // g
  double hosts;          // n
  double gpus;           // G = g n
};

Setup setup_of(const CalculatorInput& input) {
  return {double(input.parameters), double(input.largest_layer), double(input.gpus_per_host),
          double(input.hosts()), double(input.gpus)};
}

CalculatorAnswer make_answer(const Need& gpu, const Need& host, const std::string& options,
                             const std::string& source) {
  const auto gpu_bytes = uint64_t(gpu.bytes);
  const auto host_bytes = uint64_t(host.bytes);
  const std::string printed = fmt::format(" {:7.2f}GB | {:6.2f}GB | {}", double(host_bytes) / kGib,
                                          double(gpu_bytes) / kGib, options);
  return {options,
          gpu_bytes,
          host_bytes,
          printed,
          {{"gpu", gpu.formula, gpu.numbers, gpu_bytes, source},
           {"cpu", host.formula, host.numbers, host_bytes, source}}};
}

// Each process of a host first makes the model in float32.
Need initial_copies(double parameters, const char* letter, const Setup& s) {
  return {parameters * 4 * s.gpus_per_host * kBufferFactor, fmt::format("4 g {} x 1.5", letter),
          fmt::format("4 x {} x {:.0f} x 1.5", s.gpus_per_host, parameters)};
}

Need zero2_gpu(const Setup& s, bool offload) {
  if (offload) return {2 * s.parameters, "2 P", fmt::format("2 x {:.0f}", s.parameters)};
  return {2 * s.parameters + double(uint64_t(18 * s.parameters / s.gpus)), "2 P + int(18 P / G)",
          fmt::format("2 x {:.0f} + int(18 x {:.0f} / {})", s.parameters, s.parameters, s.gpus)};
}

// The factor is the GPUs of all hosts, though the result is printed per host.
Need zero2_host(const Setup& s, bool offload) {
  if (!offload) return initial_copies(s.parameters, "P", s);
  return {s.parameters * std::max(4 * s.gpus, 16.0) * kBufferFactor, "P max(4 G, 16) x 1.5",
          fmt::format("{:.0f} x max(4 x {}, 16) x 1.5", s.parameters, s.gpus)};
}

struct Offload {
  bool optimizer;
  bool parameters;
};

Need zero3_gpu(const Setup& s, Offload offload) {
  const double layer = 4 * s.largest_layer;
  if (offload.parameters) return {layer, "4 L", fmt::format("4 x {:.0f}", s.largest_layer)};
  const int each = offload.optimizer ? 2 : 18;
  return {layer + double(uint64_t(each * s.parameters / s.gpus)),
          fmt::format("4 L + int({} P / G)", each),
          fmt::format("4 x {:.0f} + int({} x {:.0f} / {})", s.largest_layer, each, s.parameters,
                      s.gpus)};
}

Need zero3_host(const Setup& s, Offload offload, bool zero_init) {
  if (!offload.optimizer)
    return zero_init ? initial_copies(s.largest_layer, "L", s)
                     : initial_copies(s.parameters, "P", s);
  const double each = offload.parameters ? 18 : 16;
  const double share = 1 / s.hosts;  // gpus_factor
  if (zero_init)
    return {s.parameters * each * share * kBufferFactor, fmt::format("{} P / n x 1.5", each),
            fmt::format("{} x {:.0f} / {} x 1.5", each, s.parameters, s.hosts)};
  return {s.parameters * std::max(4 * s.gpus_per_host, each * share) * kBufferFactor,
          fmt::format("P max(4 g, {} / n) x 1.5", each),
          fmt::format("{:.0f} x max(4 x {}, {} / {}) x 1.5", s.parameters, s.gpus_per_host, each,
                      s.hosts)};
}

std::vector<CalculatorAnswer> ask_zero2(const Setup& setup) {
  std::vector<CalculatorAnswer> answers;
  for (const bool offload : {true, false}) {
    answers.push_back(
        make_answer(zero2_gpu(setup, offload), zero2_host(setup, offload),
                    fmt::format("offload_optimizer={}", offload ? "cpu " : "none"),
                    "DeepSpeed stage_1_and_2.py, estimate_zero2_model_states_mem_needs"));
  }
  return answers;
}

std::vector<CalculatorAnswer> ask_zero3(const Setup& setup) {
  std::vector<CalculatorAnswer> answers;
  for (const Offload offload : {Offload{true, true}, Offload{true, false}, Offload{false, false}}) {
    for (const bool zero_init : {true, false}) {
      answers.push_back(
          make_answer(zero3_gpu(setup, offload), zero3_host(setup, offload, zero_init),
                      fmt::format("offload_param={}, offload_optimizer={}, zero_init={}",
                                  offload.parameters ? "cpu " : "none",
                                  offload.optimizer ? "cpu " : "none", int(zero_init)),
                      "DeepSpeed stage3.py, estimate_zero3_model_states_mem_needs"));
    }
  }
  return answers;
}

}  // namespace

std::vector<CalculatorAnswer> ask_deepspeed(const CalculatorInput& input) {
  const Setup setup = setup_of(input);
  return input.stage == 2 ? ask_zero2(setup) : ask_zero3(setup);
}

}  // namespace gxp
