#include "lib/train/model_view.h"

#include <memory>

#include "lib/base/bytes.h"
#include "lib/base/log.h"
#include "lib/collective/communicator.h"
#include "lib/train/data_checks.h"
#include "lib/train/training_state.h"

namespace gxp {
namespace {

// data.valid, which all ranks see alike.
std::unique_ptr<const Dataset> open_validation(const RunConfig& config, const RunPlan& plan,
                                               Communicator& communicator) {
  auto data =
      std::make_unique<const Dataset>(config.data.valid, int(plan.shape.positions),
                                      config.model.vocab_size, "data.valid", config.data.tokenizer);
  const std::vector<DataFingerprint> fingerprints = data->fingerprints();
  if (communicator.rank() == 0) log_data(fingerprints, "data.valid");
  check_same_data(fingerprints, "data.valid", communicator);
  return data;
}

void log_model(const RankModel& model, size_t parameters) {
  const Backend& backend = model.backend;
  log_info("{} on {}: {:.2f} M parameters, {} x {} thread(s), {}; memory per rank: {}",
           model.config.model.family, backend.ops->description(), double(parameters) / 1e6,
           model.sharded.groups.world_size, backend.pool->thread_count(),
           model.config.parallel.strategy, format_bytes(backend.device->tracker().live().total()));
}

}  // namespace

ModelView view_model(const RunConfig& config, Communicator& communicator, Backend& backend,
                     const ViewRequest& request) {
  const RunPlan plan = plan_evaluation(config, communicator.world_size());
  const auto data = request.evaluate ? open_validation(config, plan, communicator) : nullptr;
  RankModel model(config, plan, communicator, backend);
  ModelView view;
  view.parameters = plan.architecture.parameter_count();
  if (request.resume)
    view.step = load_newest_weights(model, communicator, request.settings);
  else
    model.initialise_weights();
  if (communicator.rank() == 0) log_model(model, view.parameters);
  if (request.evaluate) view.loss = evaluate(model, *data);
  const bool generates = communicator.rank() == 0 || model.sharded.is_sharded();
  if (request.generation.count > 0 && generates)
    view.generated = generate(model, request.generation);
  return view;
}

}  // namespace gxp
