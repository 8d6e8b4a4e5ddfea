#include "lib/tools/planner/predict_time.h"

#include <algorithm>

namespace gxp {
namespace {

// As Generation::exposed, by PyTorch's FSDP of 2024. Not fitted: the runs tell it and the share of
// the network's rate only together.
constexpr double kExposedByFsdp = 0.3;

// What the formulas read, as fractions, once.
struct Rates {
  explicit Rates(const TrainCase& question)
      : plan(question.plan),
        model(*question.model),
        gpu(*question.hardware->gpu),
        links(question.hardware->links),
        fitted(*gpu.generation),
        software(*question.software) {
    const bool low = plan.format != NumberFormat::kBf16;
    flops_16 = gpu.flops_16 * gpu.clock_share;
    flops = low ? gpu.flops_8 * gpu.clock_share * fitted.matmul_8 : flops_16 * fitted.matmul_16;
    tokens = double(plan.sequence * plan.micro_batch) / plan.context;
    tensor = plan.tensor;
    queries = double(model.heads * model.head_size);
    keys = double(model.key_value_heads * model.head_size);
    gated = model.kind == BlockKind::kLlama;
    fsdp = software.buffers == ShardBuffers::kFsdp2;
    exposed = fsdp ? kExposedByFsdp : fitted.exposed;
  }

  [[nodiscard]] double product(double n, double k, double rate) const {
    const double narrow = fitted.half_width * (1 / tokens + 1 / n + 1 / k);
    return 2 * tokens * n * k / rate * (1 + narrow);
  }

  const TrainPlan& plan;
  const PublishedModel& model;
  const Gpu& gpu;
  const Links& links;
  const Generation& fitted;
  const Software& software;
  double flops_16 = 0;  // of the data sheet
  double flops = 0;     // that a wide product reaches
  double tokens = 0;    // of a micro-batch, on one GPU
  double tensor = 1;
  double queries = 0;
  double keys = 0;
  bool gated = false;
  bool fsdp = false;   // of 2024
  double exposed = 0;  // share of sharding's communication
};

// Seconds of one layer and micro-batch.
struct Pass {
  double products = 0;
  double attention = 0;
  double rest = 0;
  double tensor = 0;

  [[nodiscard]] double all() const { return products + attention + rest + tensor; }
};

double block_products(const Rates& r) {
  const auto hidden = double(r.model.hidden);
  const double mlp = double(r.model.mlp) / r.tensor;
  return r.product((r.queries + 2 * r.keys) / r.tensor, hidden, r.flops) +
         r.product(hidden, r.queries / r.tensor, r.flops) +
         r.product(r.gated ? 2 * mlp : mlp, hidden, r.flops) + r.product(hidden, mlp, r.flops);
}

// Forward and backward.
std::array<double, 2> block_attention(const Rates& r) {
  const double flops = 2 * r.tokens * double(r.plan.sequence) * r.queries / r.tensor;
  if (r.software.attention == Attention::kStored) {
    // The batched products see the whole square, a third slower than those of the weights.
    const double products = 2 * 1.3 * flops / (r.flops_16 * r.fitted.matmul_16);
    const double scores = r.fitted.score_bytes * double(r.model.heads) / r.tensor * r.tokens *
                          double(r.plan.sequence) / r.gpu.memory_bytes_per_s;
    return {products + scores, 2 * products + 1.5 * scores};
  }
  const double share = r.software.attention == Attention::kTriton ? r.fitted.attention_triton
                                                                  : r.fitted.attention_flash;
  const double forward = flops / (r.flops_16 * share);
  return {forward, 2.5 * forward};
}

double rest_bytes(const Rates& r) {
  double bytes = 0;
  switch (r.software.elementwise) {
    case Elementwise::kEager:
      bytes = r.gated ? r.fitted.eager_llama_bytes : r.fitted.eager_bytes;
      break;
    case Elementwise::kFused:
      bytes = r.fitted.fused_bytes;
      break;
    case Elementwise::kMegatron2021:
      bytes = r.fitted.megatron_2021_bytes;
      break;
  }
  if (r.plan.format == NumberFormat::kFp8) bytes += r.fitted.fp8_bytes;
  if (r.plan.format == NumberFormat::kMxfp8) bytes += r.fitted.mxfp8_bytes;
  return bytes;
}

double block_rest(const Rates& r) {
  const double width =
      4 * double(r.model.hidden) + r.queries + 2 * r.keys + double(r.model.mlp) * (r.gated ? 3 : 2);
  // Without sequence parallelism the 10 of 34 bytes around norms and residuals are not divided.
  const double part = r.plan.sequence_parallel ? 1 / r.tensor : 0.3 + 0.7 / r.tensor;
  return rest_bytes(r) * width / 15 * r.tokens * part / r.gpu.memory_bytes_per_s;
}

// That a GPU sends in one layer and micro-batch, forward: two gathers and two reductions.
double tensor_bytes(const Rates& r) {
  return 2 * 2 * r.tokens * double(r.model.hidden) * 2 * (r.tensor - 1) / r.tensor;
}

double block_tensor(const Rates& r) {
  if (r.plan.tensor == 1) return 0;
  const double exposed = r.software.overlaps_tensor ? r.fitted.tensor_exposed : 1;
  return tensor_bytes(r) / (r.links.nvlink_bytes_per_s * r.fitted.link_share) * exposed;
}

double recomputed(const Rates& r, const Pass& forward) {
  switch (r.plan.recompute) {
    case Recompute::kNone:
      return 0;
    case Recompute::kSelective:
      return r.software.attention == Attention::kStored ? forward.attention : 0.3 * forward.all();
    case Recompute::kFull:
      return forward.all();
  }
  return 0;
}

double head_seconds(const Rates& r) {
  const double vocabulary = double(r.model.vocabulary) / r.tensor;
  return 3 * r.product(vocabulary, double(r.model.hidden), r.flops_16 * r.fitted.matmul_16) +
         r.fitted.head_bytes * r.tokens * vocabulary / r.gpu.memory_bytes_per_s;
}

// Bandwidth of a collective among `ranks` that are `stride` GPUs apart: each domain's NICs serve
// the ring of every stride.
double bandwidth(const Rates& r, int ranks, int stride) {
  const int domain = r.links.gpus_per_domain;
  if (ranks * stride <= domain) return r.links.nvlink_bytes_per_s * r.fitted.link_share;
  const double share = r.software.network_2021 ? r.fitted.network_share_2021
                       : r.fsdp                ? r.fitted.network_share_fsdp
                                               : r.fitted.network_share;
  return r.links.network_bytes_per_s * share * std::max(1.0, double(domain) / stride);
}

double stage_parameters(const Rates& r) {
  return double(parameter_count(r.model)) / (r.tensor * r.plan.pipeline);
}

// Communication of a GPU, one after the other.
struct Transfer {
  double seconds = 0;
  LinkBytes sent = {};

  Transfer operator+(const Transfer& other) const {
    return {seconds + other.seconds,
            {sent.domain + other.sent.domain, sent.network + other.sent.network}};
  }
  Transfer operator*(double times) const {
    return {times * seconds, {times * sent.domain, times * sent.network}};
  }
};

// Each rank of a ring sends `bytes` to the next one, `stride` GPUs on. Only a domain's
// last rank sends out of it; the result is the average of its GPUs.
Transfer pass_on(const Rates& r, double bytes, int ranks, int stride) {
  const int domain = r.links.gpus_per_domain;
  const int in_domain = std::max(1, domain / stride);  // ranks of the ring
  const double leaving = ranks * stride <= domain ? 0 : 1.0 / in_domain;
  return {bytes / bandwidth(r, ranks, stride), {bytes * (1 - leaving), bytes * leaving}};
}

struct Sharding {
  Transfer forward;   // of a micro-batch
  Transfer backward;  // of a micro-batch
  Transfer once;      // of a step
};

Sharding shard(const Rates& r) {
  const int shards = r.plan.shards();
  const double bytes = 2 * stage_parameters(r);
  Sharding sharding;
  if (r.plan.data_ranks() == 1) return sharding;
  Transfer one;  // gather, or reduce
  if (shards > 1) one = pass_on(r, bytes * (shards - 1) / shards, shards, r.plan.tensor);
  const int replicas = r.plan.data_ranks() / shards;
  // The replicas' shards lie one shard group apart, so each GPU has its own NIC.
  if (replicas > 1)
    sharding.once = pass_on(r, 2 * bytes / shards * (replicas - 1) / replicas, replicas,
                            r.plan.tensor * shards);
  // A pipeline keeps what it has gathered, and reduces after the last micro-batch.
  const bool each = r.plan.stage >= 2 && r.plan.pipeline == 1;
  if (!each) {
    sharding.once = sharding.once + one * (r.plan.stage == 3 ? 3 : 2);
    return sharding;
  }
  if (r.plan.stage == 3) sharding.forward = one;
  sharding.backward = r.plan.stage == 3 ? one * 2 : one;
  if (r.plan.stage == 2) sharding.once = sharding.once + one;
  return sharding;
}

// What is not hidden behind `compute` seconds.
double exposed(const Rates& r, double compute, double communication) {
  return std::max(r.exposed * communication, communication - compute);
}

// AdamW reads and writes 28 bytes a parameter; in main memory at its rate, gradients and new
// parameters crossing the link; parameters that lie there cross it twice a micro-batch.
double update_seconds(const Rates& r) {
  const double owned = stage_parameters(r) / (r.plan.stage >= 1 ? r.plan.shards() : 1);
  if (r.plan.offload == StateOffload::kNone) return 28 * owned / r.gpu.memory_bytes_per_s;
  double link = 4 * owned;
  if (r.plan.offload == StateOffload::kAll) link += 4 * owned * double(r.plan.accumulation);
  return (28 * owned + link) / r.links.host_bytes_per_s;
}

double layers_of_stage(const Rates& r) {
  const auto layers = double(r.model.layers);
  if (r.model.layers % uint64_t(r.plan.pipeline) == 0) return layers / r.plan.pipeline;
  return (layers + 2) / r.plan.pipeline;  // embedding and head take a layer's place each
}

}  // namespace

StepPrediction predict_time(const TrainCase& question) {
  const Rates r(question);
  const double layers = layers_of_stage(r);
  const std::array<double, 2> attention = block_attention(r);
  const Pass forward{block_products(r), attention[0], block_rest(r), block_tensor(r)};
  const Pass backward{2 * forward.products, attention[1], 1.5 * forward.rest, forward.tensor};
  const bool own_head = r.model.layers % uint64_t(r.plan.pipeline) == 0;
  const double head = own_head ? head_seconds(r) : 0;
  const double again = layers * recomputed(r, forward);
  const double host = r.software.eager ? layers * r.fitted.host_s : 0;
  const Sharding sharding = shard(r);
  const double exposed_each =
      exposed(r, layers * forward.all() + head / 3, sharding.forward.seconds) +
      exposed(r, layers * backward.all() + again + head * 2 / 3, sharding.backward.seconds);
  const auto times = double(r.plan.accumulation);
  StepPrediction step;
  step.products = times * layers * (forward.products + backward.products);
  step.attention = times * layers * (forward.attention + backward.attention);
  step.rest = times * layers * (forward.rest + backward.rest);
  step.tensor = times * layers * (forward.tensor + backward.tensor);
  step.recompute = times * again;
  step.head = times * head;
  step.sharding = times * exposed_each + r.exposed * sharding.once.seconds;
  step.update = update_seconds(r);
  const double micro_batch = layers * (forward.all() + backward.all()) + again + head + host;
  step.bubble = micro_batch * (r.plan.pipeline - 1) / r.plan.interleave;
  step.host = times * host + r.fitted.step_s;
  const Transfer moved = (sharding.forward + sharding.backward) * times + sharding.once;
  step.communication = moved.seconds;
  step.sent = moved.sent;
  const double passes = r.plan.recompute == Recompute::kFull ? 3 : 2;
  step.sent.domain += times * layers * passes * tensor_bytes(r);
  return step;
}

double model_flops_per_gpu(const TrainCase& question) {
  const PublishedModel& model = *question.model;
  const TrainPlan& plan = question.plan;
  const bool has_table = model.kind == BlockKind::kGpt && model.position_table;
  double looked_up = has_table ? double(model.positions * model.hidden) : 0;
  if (!model.tied_head) looked_up += double(model.vocabulary * model.hidden);
  const double per_token = 6 * (double(parameter_count(model)) - looked_up) +
                           6 * double(model.layers * model.heads * model.head_size * plan.sequence);
  return per_token * double(plan.tokens_per_step()) / plan.gpus;
}

double tokens_to_hide(double flops, double bytes_per_s, int ranks, double bytes_each) {
  return bytes_each / 2 * (ranks - 1) / ranks * flops / bytes_per_s;
}

double tokens_to_hide(const TrainCase& question) {
  const Rates r(question);
  return tokens_to_hide(r.flops, bandwidth(r, r.plan.shards(), r.plan.tensor), r.plan.shards());
}

}  // namespace gxp
