// The step programs of several ranks whose devices map each other's memory, on one simulated
// device: a collective also touches the peers' buffers, and only its two meetings, of all who enter
// and of all who are done, order it among them.
#include <algorithm>
#include <chrono>
#include <deque>

#include "lib/base/range.h"
#include "lib/program/build.h"
#include "lib/train/step/program_runner.h"
#include "lib/zero/lanes.h"
#include "lib/zero/memory/program_memory.h"
#include "tests/catch.h"
#include "tests/support/sim_device.h"
#include "tests/train/golden.h"

namespace gxp {
namespace {

bool is_collective(const Op& op) {
  using enum OpKind;
  constexpr std::array kKinds = {kGatherParameters, kReduceGradients, kReduceLoss, kGatherNorm,
                                 kGatherDirections};
  return std::ranges::find(kKinds, op.kind) != kKinds.end();
}

struct Meetings {
  bool enter = true;
  bool leave = true;
};

class PeerRun {
 public:
  PeerRun(const StepProgram& program, int ranks, uint64_t seed) : program_(program), sim_(seed) {
    for (int rank = 0; rank < ranks; ++rank) ranks_.emplace_back(sim_, program);
  }

  // Throws the race that it finds.
  void run(Meetings meetings, int steps) {
    for (int step = 0; step < steps; ++step) {
      for (size_t id = 0; id < program_.ops.size(); ++id) {
        if (is_collective(program_.ops[id]))
          submit_collective(id, meetings);
        else
          submit_own(id);
      }
    }
    for (Rank& rank : ranks_) {
      for (const Lane lane : {Lane::kComm, Lane::kOffload, Lane::kCompute})
        rank.lanes[lane].synchronize(Deadline::after(std::chrono::seconds(60)));
    }
  }

 private:
  struct Rank {
    Rank(Device& device, const StepProgram& program) : memory(device, program), lanes(device) {
      for (size_t id = 0; id < program.ops.size(); ++id) {
        done.push_back(device.make_event());
        entered.push_back(device.make_event());
        moved.push_back(device.make_event());
      }
    }
    ProgramMemory memory;
    Lanes lanes;
    std::vector<std::unique_ptr<Event>> done, entered, moved;  // by operation
  };

  // After what its own rank's program says.
  Stream& stream_for(Rank& rank, const Op& op) {
    Stream& stream = rank.lanes[op.lane];
    for (const OpId before : op.after) stream.wait(*rank.done[size_t(before)]);
    return stream;
  }

  void submit(Stream& stream, std::string name, std::vector<Access> accesses) {
    stream.submit(works_.emplace_back(Work{std::move(name), [] {}, std::move(accesses)}));
  }

  void submit_own(size_t id) {
    const Op& op = program_.ops[id];
    for (Rank& rank : ranks_) {
      Stream& stream = stream_for(rank, op);
      std::vector<Access> accesses;
      for (const BufferUse& use : op.uses) accesses.push_back(rank.memory.access(use));
      submit(stream, describe(op), std::move(accesses));
      stream.record(*rank.done[id]);
    }
  }

  void submit_collective(size_t id, Meetings meetings) {
    const Op& op = program_.ops[id];
    for (Rank& rank : ranks_) stream_for(rank, op).record(*rank.entered[id]);
    for (int rank = 0; rank < int(ranks_.size()); ++rank) {
      Stream& stream = ranks_[size_t(rank)].lanes[op.lane];
      const std::vector<int> members = program_.groups.members(op.collective.group, rank);
      if (meetings.enter)
        for (const int peer : members) stream.wait(*ranks_[size_t(peer)].entered[id]);
      submit(stream, fmt::format("{} of rank {}", describe(op), rank), touched(op, rank, members));
      stream.record(*ranks_[size_t(rank)].moved[id]);
    }
    for (int rank = 0; rank < int(ranks_.size()); ++rank) {
      Stream& stream = ranks_[size_t(rank)].lanes[op.lane];
      if (meetings.leave)
        for (const int peer : program_.groups.members(op.collective.group, rank))
          stream.wait(*ranks_[size_t(peer)].moved[id]);
      stream.record(*ranks_[size_t(rank)].done[id]);
    }
  }

  // Of all that the members' operation touches, this rank has one part.
  std::vector<Access> touched(const Op& op, int rank, const std::vector<int>& members) {
    const auto place = size_t(std::ranges::find(members, rank) - members.begin());
    std::vector<Access> accesses;
    for (const BufferUse& use : op.uses) {
      const Range part = part_of(use.bytes.count, place, members.size());
      if (part.count == 0) continue;
      const BufferUse mine{use.buffer, {use.bytes.begin + part.begin, part.count}, use.write};
      for (const int peer : members) accesses.push_back(ranks_[size_t(peer)].memory.access(mine));
    }
    return accesses;
  }

  static Range part_of(size_t count, size_t part, size_t parts) {
    const size_t begin = count * part / parts;
    return {begin, count * (part + 1) / parts - begin};
  }

  const StepProgram& program_;
  SimDevice sim_;
  std::deque<Rank> ranks_;
  std::deque<Work> works_;
};

TEST_CASE("collectives on peers' memory race with nothing, while ranks meet before and behind them",
          "[train]") {
  const std::string strategy =
      GENERATE("ddp", "zero1", "zero2", "zero3", "shard_grad_op", "hybrid_shard");
  CAPTURE(strategy);
  const int ranks = 4;
  const bool hybrid = find_strategy(strategy).hybrid;
  const Architecture architecture =
      make_architecture(golden_config("gpt2-tiny", 2).model, DType::kBF16);
  const StepShape shape{.rows = 2,
                        .positions = 32,
                        .grad_accum = 2,
                        .world_size = ranks,
                        .shard_size = hybrid ? 2 : ranks,
                        .optimizer_over_replicas = hybrid,
                        .bucket_bytes = 1,
                        .gradients = DType::kBF16,
                        .reduced = DType::kF32,
                        .recompute = Recompute::kNone};
  const StepProgram program = build_train_step(architecture, make_layout(architecture, ranks),
                                               find_strategy(strategy), shape)
                                  .program;
  CHECK_NOTHROW(PeerRun(program, ranks, 1).run({}, 2));
  CHECK_THROWS_WITH(PeerRun(program, ranks, 1).run({.enter = false}, 2), Catch::Contains("race"));
  CHECK_THROWS_WITH(PeerRun(program, ranks, 1).run({.leave = false}, 2), Catch::Contains("race"));
}

}  // namespace
}  // namespace gxp
