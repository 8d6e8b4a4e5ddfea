#include "lib/train/model_view.h"

#include <memory>

#include "lib/base/bytes.h"
#include "lib/base/log.h"
#include "lib/collective/communicator.h"
#include "lib/train/data_checks.h"
#include "lib/train/run_data.h"
#include "lib/train/training_state.h"

namespace gxp {
namespace {

// data.valid, which all ranks see alike.
RunData open_validation(const RunConfig& config, Communicator& communicator) {
  RunData data = {.train = nullptr, .valid = open_valid(config)};
  const std::vector<DataFingerprint> fingerprints = data.valid->fingerprints();
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
  const RunData data = request.evaluate ? open_validation(config, communicator) : RunData{};
  const RunPlan plan = plan_evaluation(with_data(config, data), communicator.world_size());
  RankModel model(config, plan, communicator, backend);
  ModelView view;
  view.parameters = plan.architecture.parameter_count();
  if (request.resume)
    view.step = load_newest_weights(model, communicator, request.settings);
  else
    model.initialise_weights();
  if (communicator.rank() == 0) log_model(model, view.parameters);
  if (request.evaluate) view.loss = evaluate(model, *data.valid);
  const bool generates = communicator.rank() == 0 || model.sharded.is_sharded();
  if (request.generation.count > 0 && generates)
    view.generated = generate(model, request.generation);
  return view;
}

}  // namespace gxp
