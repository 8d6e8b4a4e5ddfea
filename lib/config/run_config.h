// What a user can set for `gxp train`: one struct per TOML section. Each struct's schema() is the
// only place that names a key; it drives TOML, --set, --print-config, the man page and the
// completion. The default of a setting is its member's initialiser. load.h fills a RunConfig and
// checks it.
//
// File names (model.init, data.train, data.valid, train.run_dir, checkpoint.dir) stay as typed: a
// relative one is relative to the working directory, not to the run file.
#pragma once

#include <cstdint>
#include <string>
#include <tuple>
#include <vector>

#include "lib/arch/model_config.h"
#include "lib/arch/optim_config.h"
#include "lib/base/schema.h"
#include "lib/config/parallel_config.h"
#include "lib/config/train_config.h"

namespace gxp {

struct DataConfig {
  std::vector<std::string> train;
  std::vector<std::string> valid;
  std::string tokenizer = "byte";
  int sequence = 0;  // 0: model.context
  std::string order = "shuffled";

  static constexpr auto schema() {
    using S = DataConfig;
    return section(
        "data", "Where tokens come from.",
        field("train", &S::train,
              "Files to train on: text, llm.c .bin shards, or .i32 rows of sequence + 1 tokens; "
              "told apart by content and name. Required."),
        field("valid", &S::valid, "Files to validate on, of the same kinds; may be empty."),
        field("tokenizer", &S::tokenizer, "Turns text files into tokens.", one_of("byte")),
        field("sequence", &S::sequence, "Positions used per row; 0: model.context.", at_least(0)),
        field("order", &S::order,
              "Order of the rows: as in the files, or a permutation keyed by train.seed.",
              one_of("sequential", "shuffled")));
  }
};

struct LrScheduleConfig {
  std::string name = "cosine";
  int warmup_steps = 0;
  int total_steps = 0;  // 0: train.steps
  double min_lr = 0.0;
  double decay_fraction = 0.1;  // wsd: the share of total_steps in which the rate falls

  static constexpr auto schema() {
    using S = LrScheduleConfig;
    return section(
        "lr_schedule", "The learning rate over the steps.",
        field("name", &S::name,
              "Shape after the warm-up: constant, linear or cosine to min_lr; wsd: constant, then "
              "linear to min_lr; warmup: constant.",
              one_of("constant", "linear", "cosine", "wsd", "warmup")),
        field("warmup_steps", &S::warmup_steps, "Steps of linear warm-up from 0.", at_least(0)),
        field("total_steps", &S::total_steps, "Steps until min_lr is reached; 0: train.steps.",
              at_least(0)),
        field("min_lr", &S::min_lr, "Learning rate at total_steps and after.", at_least(0)),
        field("decay_fraction", &S::decay_fraction,
              "wsd only: the share of total_steps in which the rate falls.", between(0, 1)));
  }
};

struct CheckpointConfig {
  std::string dir;  // "": no checkpoints
  int every = 0;    // steps; 0: at the end only
  int keep = 2;     // newest checkpoints kept; 0: all

  static constexpr auto schema() {
    using S = CheckpointConfig;
    return section(
        "checkpoint", "Saving and resuming.",
        field("dir", &S::dir, "Directory of the checkpoints; \"\": none are written."),
        field("every", &S::every, "Steps between two checkpoints; 0: one at the end.", at_least(0)),
        field("keep", &S::keep, "Newest checkpoints kept; 0: all.", at_least(0)));
  }
};

struct CommConfig {
  std::string transport = "auto";
  std::string engine = "auto";
  std::string algorithm = "auto";
  int channels = 0;
  uint64_t segment_bytes = 0;
  std::string profile;
  std::string topology;
  std::string codec = "none";
  int streams = 0;
  uint64_t socket_buffer_bytes = 0;
  std::string interface;
  std::string protect = "authenticate";
  bool kernel_copies = true;
  std::string flight_recorder;
  double timeout_s = 60;  // a collective that waits longer fails and names who is late

  static constexpr auto schema() {
    using S = CommConfig;
    return section(
        "comm", "Bytes between ranks.",
        field("transport", &S::transport,
              "How ranks reach each other; auto: the fastest, per peer.",
              one_of("auto", "shm", "tcp")),
        field(
            "engine", &S::engine,
            "Who runs the collectives: gxp itself, which is auto; MPI among ranks that mpirun has "
            "started, in builds with it; NCCL among ranks with a GPU each, in builds with CUDA.",
            one_of("auto", "native", "mpi", "nccl")),
        field(
            "algorithm", &S::algorithm,
            "Algorithm of those operations that have one of this name; auto: the one predicted to "
            "be fastest. direct, between ranks that share memory, goes by the fastest of three "
            "ways: copied, kernel, tiles; these names ask for one of them."),
        field(
            "channels", &S::channels,
            "Parallel rings of the algorithms that have them, ring and hierarchical; 0: as many as "
            "are predicted to be fastest.",
            between(0, 64)),
        field("segment_bytes", &S::segment_bytes,
              "Bytes of one step of the pipeline; 0: chosen by the cost model.",
              between(0, 1u << 30)),
        field(
            "profile", &S::profile,
            "TOML file with the measured constants of the cost model, on rank 0's host; \"\": the "
            "one that allreduce-test --calibrate writes, if it has; builtin: those built in."),
        field(
            "topology", &S::topology,
            "Whose plan (gxp topo plan) says along which rings ranks send and in which groups the "
            "hierarchical algorithms see them: a file, a name or live, as gxp topo --from takes "
            "them, looked at on rank 0's host. The k-th rank of a host has the GPU of local rank "
            "k; \"\": rings by rank, groups by host."),
        field(
            "codec", &S::codec,
            "How sums and averages of floats travel between hosts in allreduce-test: as they are, "
            "or with fewer bits, at the price of precision. Within a host nothing is encoded; "
            "train "
            "has no codecs.",
            one_of("none", "bf16", "f16", "int8", "int4")),
        field("streams", &S::streams, "tcp: connections to each peer; 0: a short probe decides.",
              between(0, 64)),
        field("socket_buffer_bytes", &S::socket_buffer_bytes,
              "tcp: send and receive buffer of each connection; 0: a short probe decides.",
              between(0, 1u << 30)),
        field(
            "interface", &S::interface,
            "tcp: where this host is reached, as NCCL_SOCKET_IFNAME names interfaces: prefixes, or "
            "=eth0 for one; may differ between hosts; \"\": the one that leads to rank 0."),
        field("protect", &S::protect,
              "tcp: what keeps others from changing (authenticate) or reading (encrypt) what ranks "
              "send each other, at the price of CPU time; none: a network that is trusted.",
              one_of("none", "authenticate", "encrypt")),
        field("kernel_copies", &S::kernel_copies,
              "shm: let the kernel copy between the ranks' ordinary buffers, where it can and is "
              "measured to be faster. Where ptrace is restricted, each rank permits the processes "
              "that its parent started to reach its memory."),
        field("flight_recorder", &S::flight_recorder,
              "Directory of the files rank-N.flight, in which each rank's last operations can be "
              "read also after it was killed; best in memory, as in /dev/shm; \"\": they are kept "
              "in the processes only. May differ between hosts."),
        field("timeout_s", &S::timeout_s,
              "Seconds after which a collective fails and names the rank that is late.",
              between(0.001, 1e6)));
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
