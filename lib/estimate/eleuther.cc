// EleutherAI's calculator. Numbers are doubles as in the Python of the original.
#include <fmt/format.h>

#include <optional>

#include "lib/estimate/tools.h"

namespace gxp {
namespace {

constexpr double kBucket = 5e8;          // --zero-allgather-bucket-size, elements
constexpr double kLiveParameters = 1e9;  // --zero3-max-live-params
constexpr const char* kSource = "EleutherAI/cookbook calc/calc_transformer_mem.py";

// The calculator's arguments as it takes them from a Hugging Face config: of GPT-2 it reads neither
// context nor MLP width; of others not the number of MLP matrices (2 assumed) nor of key-value
// heads (all assumed).
struct Arguments {
  double sequence, hidden, heads, layers, vocabulary, expansion;
};

Arguments arguments_of(const PublishedModel& model, int sequence) {
  const bool gpt = model.kind == BlockKind::kGpt;
  const double context = gpt ? 2048 : double(model.positions);
  return {.sequence = sequence > 0 ? double(sequence) : context,
          .hidden = double(model.hidden),
          .heads = double(model.heads),
          .layers = double(model.layers),
          .vocabulary = double(model.vocabulary),
          .expansion = gpt ? 4.0 : double(model.mlp) / double(model.hidden)};
}

double count_parameters(const Arguments& a) {
  const double embedding = 2 * a.vocabulary * a.hidden + a.hidden * a.sequence;
  const double norms = 8 * a.hidden * a.layers + 2 * a.hidden;
  const double square = a.layers * a.hidden * a.hidden;
  return embedding + norms + 4 * square + 2 * a.expansion * square;
}

Term term(const char* component, std::string formula, std::string numbers, double bytes) {
  return {component, std::move(formula), std::move(numbers), uint64_t(bytes), kSource};
}

// 34 bytes a value with 16 bits; the scores of the attention, 5 a s / h, only if not checkpointed.
Term activations(const Question& question, const Arguments& a) {
  const double values = a.sequence * question.micro_batch * a.hidden * a.layers;
  const bool scores = !question.checkpoint_activations;
  const int parts = question.partition_activations ? question.tensor_parallel : 1;
  const double each = 34 + (scores ? 5 * a.heads * a.sequence / a.hidden : 0);
  std::string numbers = fmt::format("{} x {} x {} x {} x {:.6g}", a.sequence, question.micro_batch,
                                    a.hidden, a.layers, each);
  if (parts > 1) numbers += fmt::format(" / {}", parts);
  return term(
      "activations",
      fmt::format("s B h L {}{}", scores ? "(34 + 5 a s / h)" : "34", parts > 1 ? " / t" : ""),
      std::move(numbers), values * each / parts);
}

// One kind of state: bytes per parameter, and by what they are divided.
Term state(const char* component, int bytes, double parameters, int parts) {
  if (parts == 1)
    return term(component, fmt::format("{} P", bytes),
                fmt::format("{} x {:.0f}", bytes, parameters), bytes * parameters);
  return term(component, fmt::format("{} P / d", bytes),
              fmt::format("{} x {:.0f} / {}", bytes, parameters, parts),
              bytes * parameters / parts);
}

Term communication(const Question& question, int bytes) {
  if (question.gpus == 1 || question.stage == 0) return term("communication", "0", "0", 0);
  if (question.stage < 3)
    return term("communication", fmt::format("{} bucket", bytes), fmt::format("{} x 5e8", bytes),
                bytes * kBucket);
  return term("communication", fmt::format("{} (bucket + live parameters)", bytes),
              fmt::format("{} x (5e8 + 1e9)", bytes), bytes * (kBucket + kLiveParameters));
}

std::vector<Term> terms_of(const Question& question) {
  std::vector<Term> terms;
  auto parameters = double(question.parameters);
  if (question.model != nullptr) {
    const Arguments arguments = arguments_of(*question.model, question.sequence);
    parameters = count_parameters(arguments);
    terms.push_back(activations(question, arguments));
  }
  const int bytes = question.precision == "fp32" ? 4 : 2;
  const int gpus = question.gpus;
  const int stage = question.stage;
  terms.push_back(
      state("model", bytes, parameters, question.tensor_parallel * (stage == 3 ? gpus : 1)));
  terms.push_back(state("gradients", 4, parameters, stage >= 2 ? gpus : 1));
  terms.push_back(state("optimizer", 12, parameters, stage >= 1 ? gpus : 1));
  terms.push_back(communication(question, bytes));
  return terms;
}

}  // namespace

std::vector<ToolEstimate> ask_eleuther(const Question& question) {
  ToolEstimate answer;
  answer.terms = terms_of(question);
  for (const Term& each : answer.terms) answer.gpu_bytes += each.bytes;
  answer.options = question.model == nullptr         ? "no activations: the shape is not known"
                   : question.checkpoint_activations ? "--checkpoint-activations"
                                                     : "activations not recomputed";
  answer.printed = fmt::format("Per-GPU Memory Required for Training: {:.2f} GiB",
                               double(answer.gpu_bytes) / kGib);
  return {answer};
}

}  // namespace gxp
