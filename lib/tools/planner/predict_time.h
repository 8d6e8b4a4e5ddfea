// How long a step takes on published hardware: a roofline of the model's products, attention and
// the rest, and the communication that compute does not hide. Pure; about a microsecond.
//
//   product      2 m n k / (share of the peak), and as much more as its three widths are narrow
//   attention    its causal half at a share of the peak; 2.5 times that backward; or products and
//                passes over the scores where they are stored
//   rest         bytes / memory bandwidth, by how much the software fuses; 1.5 times that backward
//   sharding     stage 3 gathers twice and reduces in each micro-batch, stage 2 reduces in each and
//                gathers once, stages 0 and 1 move both once in a step; a share is exposed, and all
//                that is longer than the pass that would hide it
//   tensor       four collectives of the activations a layer, six with full recomputation
//   pipeline     (stages - 1) / interleave micro-batches more
// Errors against published runs: docs/RESULTS.md.
#pragma once

#include "lib/tools/planner/train_plan.h"

namespace gxp {

// Bytes that a GPU sends, by the class of link.
struct LinkBytes {
  double domain = 0;   // inside a host, or what NVLink joins
  double network = 0;  // between those: the average of a domain's GPUs
};

// Seconds of a step on the GPU that takes longest. The parts add up to the whole.
struct StepPrediction {
  double products = 0;
  double attention = 0;
  double rest = 0;    // norms, activations, residuals, casts
  double head = 0;    // logits and loss
  double tensor = 0;  // tensor parallelism's communication, exposed
  double recompute = 0;
  double sharding = 0;  // data parallelism's communication, exposed
  double bubble = 0;    // pipeline stages that wait
  double update = 0;    // of the optimizer, and what is fetched from main memory
  double host = 0;

  double communication = 0;  // all of data parallelism's, hidden or not: not part of the sum
  LinkBytes sent;            // in a step, for data and tensor parallelism

  [[nodiscard]] double seconds() const {
    return products + attention + rest + head + tensor + recompute + sharding + bubble + update +
           host;
  }
};

// The plan is possible (train_plan.h).
StepPrediction predict_time(const TrainCase& question);

// Operations of the model in a step, on each GPU: 6 per parameter in a product and token, and
// attention, counting the causal half; without recomputation.
double model_flops_per_gpu(const TrainCase& question);

// The least tokens of a micro-batch on a GPU with which gathers and reductions of `bytes_each` per
// parameter take no longer than the products that hide them, forward (one gather of all parameters
// against 2 operations per parameter and token): (bytes_each / 2) c F / bandwidth, c = (N - 1) / N.
double tokens_to_hide(double flops, double bytes_per_s, int ranks, double bytes_each = 2);
// The same for a plan, with the achievable rates of its hardware.
double tokens_to_hide(const TrainCase& question);

}  // namespace gxp
