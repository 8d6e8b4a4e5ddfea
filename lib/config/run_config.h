// The user's settings of `gxp train`: one struct per TOML section. Each struct's schema() is the
// only place that names a key; it drives TOML, --set, --print-config, the man page and the
// completion. The default of a setting is its member's initialiser. load.h fills a RunConfig and
// checks it. settings.cc alone instantiates the schemas.
//
// File names (model.init, data.train, data.valid, train.run_dir, checkpoint.dir) stay as typed: a
// relative one is relative to the working directory, not to the run file.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "lib/arch/lora_config.h"
#include "lib/arch/model_config.h"
#include "lib/arch/optim_config.h"
#include "lib/base/choice.h"
#include "lib/base/schema.h"
#include "lib/config/comm_config.h"
#include "lib/config/data_config.h"
#include "lib/config/parallel_config.h"
#include "lib/config/train_config.h"

namespace gxp {

// What lr_schedule.name may be: the rows of lr_schedules.inc. For the manual: the shape of each.
std::vector<std::string_view> lr_schedule_names();
std::string_view lr_schedules_in_words();

struct LrScheduleConfig {
  std::string name = "cosine";
  int warmup_steps = 0;
  int total_steps = 0;  // 0: train.steps
  double min_lr = 0.0;
  double decay_fraction = 0.1;  // wsd: the share of total_steps in which the rate falls

  using S = LrScheduleConfig;
  static void schema(auto& field) {
    field.section("lr_schedule", "Learning-rate schedule.");
    field("name", &S::name, lr_schedules_in_words(), one_of(lr_schedule_names()));
    field("warmup_steps", &S::warmup_steps, "Steps of linear warm-up from 0.", at_least(0));
    field("total_steps", &S::total_steps,
          "Length of the schedule in steps, counted as PyTorch does: the rate is above min_lr "
          "until then. 0: train.steps.",
          at_least(0));
    field("min_lr", &S::min_lr, "Learning rate after total_steps.", at_least(0));
    field("decay_fraction", &S::decay_fraction,
          "wsd only. Fraction of total_steps in which the rate decays.", between(0, 1));
  }
};

enum class CheckpointLayout { kSharded, kFull };
constexpr std::array<std::string_view, 2> words_of(CheckpointLayout) { return {"sharded", "full"}; }
enum class ExportType { kNone, kBf16, kFp16, kFp32 };
constexpr std::array<std::string_view, 4> words_of(ExportType) {
  return {"none", "bf16", "fp16", "fp32"};
}

enum class ReplicaPlace { kNone, kNeighbour };
constexpr std::array<std::string_view, 2> words_of(ReplicaPlace) { return {"none", "neighbour"}; }

struct CheckpointConfig {
  std::string dir;     // "": no checkpoints
  int every = 0;       // steps; 0: at the end only
  int keep = 2;        // newest checkpoints kept; 0: all
  int keep_every = 0;  // steps: checkpoints of its multiples are kept, too; 0: none
  bool async = false;  // written while training goes on
  Choice<CheckpointLayout> layout = CheckpointLayout::kSharded;
  Choice<ExportType> export_type = ExportType::kNone;
  Choice<ReplicaPlace> replica = ReplicaPlace::kNone;
  int replica_every = 10;  // steps
  std::string replica_dir = "/dev/shm";

  using S = CheckpointConfig;
  static void schema(auto& field) {
    field.section("checkpoint", "Saving checkpoints and resuming from them.");
    field("dir", &S::dir, "Directory of the checkpoints. \"\": none are written.");
    field("every", &S::every, "Steps between checkpoints. 0: a single one at the end.",
          at_least(0));
    field("keep", &S::keep, "Number of recent checkpoints to keep. 0: all.", at_least(0));
    field("keep_every", &S::keep_every,
          "Also keep every checkpoint whose step is a multiple of this. 0: none.", at_least(0));
    field("async", &S::async,
          "Write checkpoints in the background. Training only waits for an f32 copy of what each "
          "rank saves. The copy occupies host memory until the run ends.");
    field("layout", &S::layout,
          "sharded: each rank's file is kept as written. full: rank 0 joins the files into one, "
          "whose bytes are those that a single rank would write.");
    field("export", &S::export_type,
          "Also write each checkpoint's weights, in this type, as a Hugging Face directory "
          "step-N/huggingface. Rank 0 writes it in the background. Of runs with [lora]: the "
          "adapters alone, as a directory of PEFT.");
    field("replica", &S::replica,
          "neighbour: each rank's part of the state also lies in memory, of its own host and of "
          "the next one. After a rank's death or the loss of a host, the ranks that are started "
          "again (--max-restarts) continue from there, if the hosts that are left hold all "
          "parts; otherwise from the newest checkpoint.");
    field("replica_every", &S::replica_every,
          "Steps between replicas. They are copied in the background; training waits only for an "
          "f32 copy of what each rank saves.",
          at_least(1));
    field("replica_dir", &S::replica_dir,
          "Where each host keeps its replicas: a directory in memory, or on a disk of its own. A "
          "host needs room for two replicas of its ranks and two of its neighbour's.");
  }
};

struct RunConfig {
  ModelConfig model;
  LoraConfig lora;
  DataConfig data;
  TrainConfig train;
  Fp16Config fp16;
  OptimConfig optim;
  LrScheduleConfig lr_schedule;
  ParallelConfig parallel;
  OffloadConfig offload;
  CheckpointConfig checkpoint;
  CommConfig comm;

  static constexpr auto sections() {
    using S = RunConfig;
    return std::tuple(&S::model, &S::lora, &S::data, &S::train, &S::fp16, &S::optim,
                      &S::lr_schedule, &S::parallel, &S::offload, &S::checkpoint, &S::comm);
  }
};

// Whether the run has data for validation.
inline bool has_validation(const RunConfig& config) {
  return !config.data.valid.empty() || config.data.validation_split > 0;
}

// Tokens of a row.
inline size_t row_positions(const RunConfig& config) {
  return size_t(config.data.sequence > 0 ? config.data.sequence : config.model.context);
}

}  // namespace gxp
