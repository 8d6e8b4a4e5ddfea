#include "lib/train/measure_ops.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <random>
#include <thread>

#include "lib/base/error.h"
#include "lib/base/thread.h"
#include "lib/collective/communicator.h"
#include "lib/train/trainer.h"
#include "lib/transport/peers/inproc.h"

namespace gxp {
namespace {

constexpr int kBlocks = 3;
constexpr int kLeastSteps = 4;  // besides the first, which does not count
constexpr double kLeastSeconds = 0.5;

// Rows of random tokens, in a file that is gone with it.
class RandomTokens {
 public:
  RandomTokens(size_t rows, size_t sequence, int vocab_size) {
    std::string pattern = (std::filesystem::temp_directory_path() / "gxp-XXXXXX.i32").string();
    const int file = mkstemps(pattern.data(), 4);
    if (file < 0)
      fail(ErrorKind::kIo, "make {}: {}; set TMPDIR to a directory that can be written", pattern,
           std::strerror(errno));
    close(file);
    path_ = pattern;
    std::minstd_rand random(1);
    std::vector<int32_t> row(sequence + 1);
    std::ofstream stream(path_, std::ios::binary);
    for (size_t i = 0; i < rows; ++i) {
      for (int32_t& token : row) token = int32_t(random() % unsigned(vocab_size));
      stream.write(reinterpret_cast<const char*>(row.data()),
                   std::streamsize(row.size() * sizeof(int32_t)));
    }
  }
  ~RandomTokens() { std::filesystem::remove(path_); }
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  std::string path_;
};

// The run with a few blocks, on one rank alone.
RunConfig shortened(RunConfig config, const std::string& tokens) {
  config.model.layers = std::min(config.model.layers, kBlocks);
  config.model.init = "normal";
  config.data.train = {tokens};
  config.data.valid = {};
  config.data.weights = {};
  config.data.validation_split = 0;
  config.train.grad_accum = std::min(config.train.grad_accum, 2);
  config.train.recompute_units = {"*"};
  config.train.frozen = {};
  config.parallel.strategy = "ddp";
  config.parallel.shard_size = 0;
  config.offload = {};
  config.train.device_memory_bytes = 0;
  return config;
}

std::vector<OpCost> train_alone(const RunConfig& config, int ranks_here, int rank) {
  Backend backend = make_backend(config.train, ranks_here, rank);
  InprocWorld world(1);
  Communicator communicator(world.make_transport(0), backend.host(), {});
  Trainer trainer(config, communicator, backend);
  trainer.runner().finish_each();
  trainer.initialise_weights();
  trainer.continue_from(0, 0);
  trainer.step(false);
  std::vector<OpCost> costs;
  double seconds = 0;
  for (int step = 0; step < kLeastSteps || seconds < kLeastSeconds; ++step) {
    seconds += trainer.step(false).seconds;
    add_costs(costs, trainer.architecture(), trainer.program(), trainer.runner().seconds());
  }
  return costs;
}

}  // namespace

std::vector<OpCost> measure_ops(const RunConfig& config, int ranks_here) {
  const RandomTokens tokens(size_t(config.train.micro_batch), row_positions(config),
                            config.model.vocab_size);
  const RunConfig run = shortened(config, tokens.path());
  std::vector<std::vector<OpCost>> costs(static_cast<size_t>(ranks_here));
  {
    std::vector<std::jthread> ranks;
    for (int rank = 0; rank < ranks_here; ++rank)
      ranks.push_back(start_thread("of a measured rank", [&, rank] {
        costs[size_t(rank)] = train_alone(run, ranks_here, rank);
      }));
  }
  for (size_t rank = 1; rank < costs.size(); ++rank) {
    for (size_t i = 0; i < costs[0].size(); ++i) {
      const std::vector<double>& seconds = costs[rank][i].seconds;
      costs[0][i].seconds.insert(costs[0][i].seconds.end(), seconds.begin(), seconds.end());
    }
  }
  return costs[0];
}

}  // namespace gxp
