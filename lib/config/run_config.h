// What a user can set for `gxp train`: one struct per TOML section. Each struct's schema() is the only
// place that names a key; it drives TOML, --set, --print-config, the man page and the completion.
// The default of a setting is its member's initialiser.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace gxp {

struct ModelConfig {
  std::string family = "gpt2";
  int vocab_size = 256;
  int context = 256;  // positions the model has
  int hidden = 256;
  int layers = 4;
  int heads = 4;
  double norm_eps = 1e-5;
  std::string init = "normal";  // a .safetensors file with Hugging Face names, or "normal"
};

struct DataConfig {
  std::vector<std::string> train;
  std::vector<std::string> valid;
  std::string tokenizer = "byte";
  int sequence = 0;              // positions used per row; 0: model.context
  std::string order = "shuffled";  // sequential | shuffled
};

struct TrainConfig {
  int steps = 1000;
  int micro_batch = 8;  // rows per rank in one micro-batch
  int grad_accum = 1;
  std::string precision = "fp32";
  uint64_t seed = 1;
  std::string deterministic = "world-size";  // world-size | off
  std::string device = "auto";               // auto | cpu
  int threads = 0;                           // per rank; 0: the rank's share of the CPUs it may use
  int log_every = 10;                        // steps between progress lines
  int valid_every = 0;                       // steps between validations; 0: at the end only
  int valid_batches = 16;                    // micro-batches per rank in one validation
};

struct OptimConfig {
  std::string name = "adamw";
  double lr = 6e-4;
  double beta1 = 0.9;
  double beta2 = 0.95;
  double eps = 1e-8;
  double weight_decay = 0.1;
  double clip = 1.0;  // largest global gradient norm; 0: none
};

struct LrScheduleConfig {
  std::string name = "cosine";  // constant | linear | cosine | wsd | warmup
  int warmup_steps = 0;
  int total_steps = 0;    // 0: train.steps
  double min_lr = 0.0;
  double decay_fraction = 0.1;  // wsd: the share of total_steps in which the rate falls
};

struct ParallelConfig {
  std::string strategy = "ddp";
  uint64_t bucket_bytes = 25u << 20;  // gradients reduced together
};

struct CheckpointConfig {
  std::string dir;  // "": no checkpoints
  int every = 0;    // steps; 0: at the end only
  int keep = 2;     // newest checkpoints kept; 0: all
};

struct CommConfig {
  std::string transport = "auto";  // auto | shm | tcp
  std::string engine = "auto";     // auto | native
  std::string algorithm = "auto";  // auto | ring | halving-doubling
  double timeout_s = 60;           // a collective that waits longer fails and names who is late
  uint64_t segment_bytes = 256u << 10;
};

struct RunConfig {
  ModelConfig model;
  DataConfig data;
  TrainConfig train;
  OptimConfig optim;
  LrScheduleConfig lr_schedule;
  ParallelConfig parallel;
  CheckpointConfig checkpoint;
  CommConfig comm;
};

}  // namespace gxp
