// The golden runs of tests/data/train, and training them on ranks that are threads.
#pragma once

#include <filesystem>
#include <stdexcept>
#include <string>
#include <vector>

#include "lib/config/run_config.h"
#include "lib/train/step/backend.h"
#include "lib/train/trainer.h"
#include "tests/arguments.h"
#include "tests/catch.h"
#include "tests/collective/run_ranks.h"
#include "tests/temporary_directory.h"

namespace gxp {

using Values = std::vector<float>;
using Settings = std::vector<std::string>;  // "KEY=VALUE"

// The golden runs: FAMILY-tiny for each model family; all of them.
std::vector<std::string> tiny_runs();
std::vector<std::string> golden_runs();

std::string golden_path(const std::string& name, const std::string& file);

// The run of a folder's spec.json on `world_size` ranks, which divides its batch.
RunConfig golden_config(const std::string& name, int world_size,
                        std::vector<std::string> sets = {});

Values values_of(const Tensor& tensor);

// The whole tensors behind what the ranks hold, and the last step's gradients, which are zero for
// frozen tensors. [collective] if that is sharded.
std::vector<Values> weights_of(Trainer& trainer, Communicator& communicator);
std::vector<Values> gradients_of(Trainer& trainer, Communicator& communicator);

bool same_bits(const std::vector<Values>& a, const std::vector<Values>& b);
// The norm of x - y over the norm of y, of all tensors.
double relative_distance(const std::vector<Values>& x, const std::vector<Values>& y);

// What one rank saw of a run.
struct Trained {
  std::vector<StepResult> steps;
  std::vector<Values> first_gradients;  // of step 1; none where they are not the host's
  std::vector<Values> weights;          // final
};

// The same losses, norms and final weights, to the bit.
void check_same(const Trained& found, const Trained& expected);

Trained train(const RunConfig& config, Communicator& communicator, Backend backend);
Trained train(const RunConfig& config, Communicator& communicator, Backend backend, RunData data);
Trained train(const RunConfig& config, Communicator& communicator);

// Trains to step `until`, from the newest checkpoint if there is one, and saves.
Trained train_part(const RunConfig& config, Communicator& communicator, int until, Backend backend);
Trained train_part(const RunConfig& config, Communicator& communicator, int until);

std::vector<Trained> train_on_ranks(const RunConfig& config, int world_size);

// Rank 0 of a run of golden_config(folder, divided_by, sets) that many cases are held against:
// trained once.
const Trained& trained_once(const std::string& folder, int world_size, const Settings& sets,
                            int divided_by);

}  // namespace gxp
