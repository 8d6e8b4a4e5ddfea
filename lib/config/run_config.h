// What a user can set for `gxp train`: one struct per TOML section. Each struct's schema() is the
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

#include "lib/arch/model_config.h"
#include "lib/arch/optim_config.h"
#include "lib/base/choice.h"
#include "lib/base/schema.h"
#include "lib/config/comm_config.h"
#include "lib/config/parallel_config.h"
#include "lib/config/train_config.h"

namespace gxp {

// What --resume does where the files of data.train have changed.
enum class ChangedData { kRefuse, kAccept };
constexpr std::array<std::string_view, 2> words_of(ChangedData) { return {"refuse", "accept"}; }

struct DataConfig {
  std::vector<std::string> train;
  std::vector<std::string> valid;
  std::string tokenizer = "auto";
  int sequence = 0;  // 0: model.context
  std::string order = "shuffled";
  Choice<ChangedData> changed = ChangedData::kRefuse;

  using S = DataConfig;
  static void schema(auto& field) {
    field.section("data", "Where tokens come from.");
    field(
        "train", &S::train,
        "Files to train on: text, llm.c .bin shards, .npy arrays of integers (one stream, or rows "
        "of sequence + 1 tokens), or .i32 rows of sequence + 1 tokens; told apart by content and "
        "name, and refused if they are of no such kind. Required.");
    field("valid", &S::valid, "Files to validate on, of the same kinds; may be empty.");
    field("tokenizer", &S::tokenizer,
          "Turns text files into tokens. byte: each byte is one, whatever model.vocab_size is; "
          "auto: the same, but text is refused if model.vocab_size is not 256.",
          one_of("auto", "byte"));
    field("sequence", &S::sequence, "Positions used per row; 0: model.context.", at_least(0));
    field("order", &S::order,
          "Order of the rows: as in the files, or a permutation keyed by train.seed.",
          one_of("sequential", "shuffled"));
    field("changed", &S::changed,
          "What --resume does if the files of train are not those that the checkpoint's run has "
          "read: refuse, or accept them and go on at the same number of samples.");
  }
};

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
    field.section("lr_schedule", "The learning rate over the steps.");
    field("name", &S::name, lr_schedules_in_words(), one_of(lr_schedule_names()));
    field("warmup_steps", &S::warmup_steps, "Steps of linear warm-up from 0.", at_least(0));
    field("total_steps", &S::total_steps,
          "Steps in which the rate is above min_lr, as PyTorch counts them; 0: train.steps.",
          at_least(0));
    field("min_lr", &S::min_lr, "Learning rate after total_steps.", at_least(0));
    field("decay_fraction", &S::decay_fraction,
          "wsd only: the share of total_steps in which the rate falls.", between(0, 1));
  }
};

enum class CheckpointLayout { kSharded, kFull };
constexpr std::array<std::string_view, 2> words_of(CheckpointLayout) { return {"sharded", "full"}; }
enum class ExportType { kNone, kBf16, kFp16, kFp32 };
constexpr std::array<std::string_view, 4> words_of(ExportType) {
  return {"none", "bf16", "fp16", "fp32"};
}

struct CheckpointConfig {
  std::string dir;     // "": no checkpoints
  int every = 0;       // steps; 0: at the end only
  int keep = 2;        // newest checkpoints kept; 0: all
  int keep_every = 0;  // steps: checkpoints of its multiples are kept, too; 0: none
  bool async = false;  // written while training goes on
  Choice<CheckpointLayout> layout = CheckpointLayout::kSharded;
  Choice<ExportType> export_type = ExportType::kNone;

  using S = CheckpointConfig;
  static void schema(auto& field) {
    field.section("checkpoint", "Saving and resuming.");
    field("dir", &S::dir, "Directory of the checkpoints; \"\": none are written.");
    field("every", &S::every, "Steps between two checkpoints; 0: one at the end.", at_least(0));
    field("keep", &S::keep, "Newest checkpoints kept; 0: all.", at_least(0));
    field("keep_every", &S::keep_every,
          "Steps of which each multiple keeps its checkpoint besides the newest; 0: none.",
          at_least(0));
    field("async", &S::async,
          "Write a checkpoint while training goes on. Training waits only for a copy of what each "
          "rank saves, in f32, which takes host memory until the run ends.");
    field(
        "layout", &S::layout,
        "sharded: each rank's file stays as it was written; full: rank 0 joins them into one file "
        "with the bytes that a single rank would have written.");
    field("export", &S::export_type,
          "Also write the weights of each checkpoint in this type, as a Hugging Face directory "
          "step-N/huggingface that other programs load. Rank 0 does it while training goes on.");
  }
};

struct RunConfig {
  ModelConfig model;
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
    return std::tuple(&S::model, &S::data, &S::train, &S::fp16, &S::optim, &S::lr_schedule,
                      &S::parallel, &S::offload, &S::checkpoint, &S::comm);
  }
};

}  // namespace gxp
