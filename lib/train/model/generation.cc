#include "lib/train/model/generation.h"

#include <algorithm>
#include <array>
#include <memory>
#include <random>
#include <span>

#include "lib/base/log.h"
#include "lib/collective/communicator.h"
#include "lib/train/model/forward_pass.h"

namespace gxp {
namespace {

class Generator {
 public:
  Generator(RankModel& model, const GenerationRequest& request)
      : model_(model),
        request_(request),
        random_(request.seed),
        tokens_(request.prompt),
        // The last token is drawn from what the model has seen before it.
        positions_(std::min(size_t(model.config.model.context),
                            request.prompt.size() + size_t(request.count) - 1)) {
    make_caches();
  }

  Tokens run() {
    model_.parameters.publish();
    for (const int32_t token : request_.prompt) emit(token);
    const size_t end = request_.prompt.size() + size_t(request_.count);
    while (tokens_.size() < end && tokens_.size() <= positions_ && !stops()) add_token();
    if (tokens_.size() < end && !stops() && model_.sharded.rank == 0)
      log_warn("generation ends after {} of {} tokens: model.context, {}, is full",
               tokens_.size() - request_.prompt.size(), request_.count, positions_);
    if (request_.finish && model_.sharded.rank == 0) request_.finish();
    return tokens_;
  }

 private:
  // The first unit, the embedding, has none.
  void make_caches() {
    const Architecture& architecture = model_.plan.architecture;
    const Decoder& decoder = architecture.decoder;
    const size_t blocks = decoder.layers.size(), arrays = decoder.has_one_qkv() ? 1 : 2;
    const Shape shape = {1, positions_, decoder.cached_channels()};
    const size_t bytes = shape.count() * size_of(architecture.compute);
    memory_ = model_.backend.device->allocate(blocks * arrays * bytes, MemoryKind::kActivations);
    const auto array = [&](size_t number) {
      return Tensor(memory_.memory().slice(number * bytes, bytes), architecture.compute, shape);
    };
    caches_.emplace_back();
    for (size_t block = 0; block < blocks; ++block)
      caches_.push_back({array(block * arrays), array(block * arrays + arrays - 1)});
  }

  // Of the tokens that the model has not seen, all of which are at the end.
  ForwardPass& pass_over(size_t positions) {
    if (pass_ != nullptr && pass_->shape().positions == positions) return *pass_;
    const RunPlan& plan = model_.plan;
    StepShape shape = plan.shape;
    shape.rows = 1;
    shape.positions = positions;
    shape.documents = false;
    pass_.reset();
    pass_ = std::make_unique<ForwardPass>(
        model_, shape,
        build_forward(plan.architecture, plan.layout, plan.strategy, shape, OpKind::kLogits),
        &caches_);
    return *pass_;
  }

  void add_token() {
    ForwardPass& pass = pass_over(tokens_.size() - seen_);
    pass.first = seen_;
    pass.fill = [&](const BatchTensors& batch) {
      std::copy(tokens_.begin() + std::ptrdiff_t(seen_), tokens_.end(),
                batch.tokens.data<int32_t>());
    };
    std::array<int32_t, 1> token = {};
    pass.finish = [&](const UnitTensors& head) {
      std::vector<float> logits(head.output.count());
      Stream& compute = model_.sharded.lanes[Lane::kCompute];
      compute.copy(memory_of(logits), head.output.memory);
      compute.finish(Deadline::after(kComputeTimeout));
      token[0] = draw_token(logits, request_.sampling, random_);
    };
    pass.run();
    seen_ = tokens_.size();
    // Ranks on different CPUs may differ in a logit's last bits, and all must go the same way.
    if (model_.sharded.is_sharded()) model_.sharded.calls.world().broadcast(memory_of(token), 0);
    tokens_.push_back(token[0]);
    emit(token[0]);
  }

  void emit(int32_t token) const {
    if (request_.emit && model_.sharded.rank == 0) request_.emit(token);
  }

  // Of the tokens behind the prompt.
  [[nodiscard]] bool stops() const {
    const std::span made = std::span(tokens_).subspan(request_.prompt.size());
    return std::ranges::any_of(request_.stops, [&](const Tokens& stop) {
      return made.size() >= stop.size() && std::ranges::equal(made.last(stop.size()), stop);
    });
  }

  RankModel& model_;
  const GenerationRequest& request_;
  std::mt19937_64 random_;
  Tokens tokens_;
  const size_t positions_;  // that the caches have
  size_t seen_ = 0;         // tokens
  Buffer memory_;
  std::vector<KeyValueCache> caches_;  // by unit
  std::unique_ptr<ForwardPass> pass_;
};

}  // namespace

Tokens generate(RankModel& model, const GenerationRequest& request) {
  GXP_ASSERT(!request.prompt.empty() && request.count > 0);
  GXP_ASSERT(request.prompt.size() <= size_t(model.config.model.context));
  return Generator(model, request).run();
}

}  // namespace gxp
