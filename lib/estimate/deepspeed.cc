// DeepSpeed's estimators. Numbers are doubles as in the Python of the original, cut to whole bytes
// where it cuts them.
#include <fmt/format.h>

#include <algorithm>

#include "lib/estimate/tools.h"

namespace gxp {
namespace {

constexpr double kBufferFactor = 1.5;  // additional_buffer_factor

// A memory need with its reason.
struct Need {
  double bytes = 0;
  std::string formula;
  std::string numbers;
};

// What the estimators go by, under the names that the formulas use.
struct Setup {
  double parameters;     // P
  double largest_layer;  // L
  double gpus_per_host;  // g
  double hosts;          // n
  double gpus;           // G = g n
};

Setup setup_of(const Question& question) {
  return {double(question.parameters), double(question.largest_layer),
          double(question.gpus_per_host), double(question.hosts()), double(question.gpus)};
}

ToolEstimate make_answer(const Need& gpu, const Need& host, const std::string& options,
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

// The model is first made in float32 on every GPU's process of a host.
Need initial_copies(double parameters, const char* letter, const Setup& s) {
  return {parameters * 4 * s.gpus_per_host * kBufferFactor, fmt::format("4 g {} x 1.5", letter),
          fmt::format("4 x {} x {:.0f} x 1.5", s.gpus_per_host, parameters)};
}

Need zero2_gpu(const Setup& s, bool offload, bool documented) {
  if (offload) return {2 * s.parameters, "2 P", fmt::format("2 x {:.0f}", s.parameters)};
  if (documented)
    return {4 * s.parameters + double(uint64_t(16 * s.parameters / s.gpus)), "4 P + int(16 P / G)",
            fmt::format("4 x {:.0f} + int(16 x {:.0f} / {})", s.parameters, s.parameters, s.gpus)};
  return {2 * s.parameters + double(uint64_t(18 * s.parameters / s.gpus)), "2 P + int(18 P / G)",
          fmt::format("2 x {:.0f} + int(18 x {:.0f} / {})", s.parameters, s.parameters, s.gpus)};
}

// The code multiplies by the GPUs of all hosts, the documentation by those of one.
Need zero2_host(const Setup& s, bool offload, bool documented) {
  if (!offload) return initial_copies(s.parameters, "P", s);
  const double gpus = documented ? s.gpus_per_host : s.gpus;
  return {s.parameters * std::max(4 * gpus, 16.0) * kBufferFactor,
          fmt::format("P max(4 {}, 16) x 1.5", documented ? "g" : "G"),
          fmt::format("{:.0f} x max(4 x {}, 16) x 1.5", s.parameters, gpus)};
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

std::vector<ToolEstimate> ask_zero2(const Setup& setup, bool documented) {
  const std::string source =
      documented ? "DeepSpeed docs/code-docs/source/memory.rst"
                 : "DeepSpeed stage_1_and_2.py, estimate_zero2_model_states_mem_needs";
  std::vector<ToolEstimate> answers;
  for (const bool offload : {true, false}) {
    const std::string options =
        documented ? fmt::format("cpu_offload={}", int(offload))
                   : fmt::format("offload_optimizer={}", offload ? "cpu " : "none");
    answers.push_back(make_answer(zero2_gpu(setup, offload, documented),
                                  zero2_host(setup, offload, documented), options, source));
  }
  return answers;
}

std::string zero3_options(Offload offload, bool zero_init, bool documented) {
  if (documented)
    return fmt::format("cpu_offload={}, cpu_offload_params={}, zero_init={}",
                       int(offload.optimizer), int(offload.parameters), int(zero_init));
  return fmt::format("offload_param={}, offload_optimizer={}, zero_init={}",
                     offload.parameters ? "cpu " : "none", offload.optimizer ? "cpu " : "none",
                     int(zero_init));
}

std::vector<ToolEstimate> ask_zero3(const Setup& setup, bool documented) {
  const std::string source = documented
                                 ? "DeepSpeed docs/code-docs/source/memory.rst"
                                 : "DeepSpeed stage3.py, estimate_zero3_model_states_mem_needs";
  std::vector<ToolEstimate> answers;
  for (const Offload offload : {Offload{true, true}, Offload{true, false}, Offload{false, false}}) {
    for (const bool zero_init : {true, false}) {
      answers.push_back(make_answer(zero3_gpu(setup, offload),
                                    zero3_host(setup, offload, zero_init),
                                    zero3_options(offload, zero_init, documented), source));
    }
  }
  return answers;
}

std::vector<ToolEstimate> ask_either(const Question& question, bool documented) {
  const Setup setup = setup_of(question);
  return question.stage == 2 ? ask_zero2(setup, documented) : ask_zero3(setup, documented);
}

}  // namespace

std::vector<ToolEstimate> ask_deepspeed(const Question& question) {
  return ask_either(question, false);
}

std::vector<ToolEstimate> ask_deepspeed_docs(const Question& question) {
  return ask_either(question, true);
}

}  // namespace gxp
