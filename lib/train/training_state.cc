#include "lib/train/training_state.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <set>
#include <string_view>

#include "lib/base/log.h"
#include "lib/ckpt/native/checkpoint.h"
#include "lib/ckpt/native/writer.h"
#include "lib/collective/gather_texts.h"
#include "lib/shard/layout.h"

namespace gxp {
namespace {

// Elements that are copied at a time between a file and the state, which may be offloaded.
constexpr size_t kSentElements = size_t{4} << 20;

// act(begin, memory) for the elements of `share`, piece by piece, in order.
template <class Act>
void by_pieces(const Range& share, std::vector<float>& staged, Act act) {
  for (size_t done = 0; done < share.count; done += kSentElements) {
    staged.resize(std::min(kSentElements, share.count - done));
    act(share.begin + done, memory_of(staged));
  }
}

// The checkpoint's tensors: the weights, then the optimizer state.
std::vector<HeldTensor> all_of(const HeldState& state) {
  std::vector<HeldTensor> all = state.weights();
  std::ranges::move(state.kept(), std::back_inserter(all));
  return all;
}

TensorInfo info_of(const HeldTensor& tensor) {
  const Role role =
      tensor.state == nullptr ? Role::kWeight : parse_role(tensor.state->role).value();
  return {tensor.spec->name, role, StorageDType::kF32, {tensor.shape.begin(), tensor.shape.end()}};
}

// Settings that a resumed run must share with the one that it continues: those that decide the
// shape of the model, which sample comes when, and what the optimizer's state means.
bool must_agree(std::string_view key) {
  constexpr std::array<std::string_view, 4> kKeys = {"data.order", "data.sequence", "optim.name",
                                                     "train.seed"};
  const bool model = key.starts_with("model.") && key != "model.init";
  return model || std::find(kKeys.begin(), kKeys.end(), key) != kKeys.end();
}

void check_agreement(const Checkpoint& checkpoint, const KeyValues& settings) {
  for (const auto& [key, value] : settings) {
    const auto saved = find_value(checkpoint.manifest().info.config, key);
    if (!must_agree(key) || !saved || *saved == value) continue;
    fail(ErrorKind::kConfig,
         "resume from {}: {} is {} there and {} now; set it as it was, or start without --resume",
         checkpoint.path(), key, *saved, value);
  }
}

// The checkpoint holds what this optimizer keeps of the tensors that are trained, and nothing that
// it does not know.
void check_kept(const Checkpoint& checkpoint, const OptimConfig& optim,
                const Architecture& architecture) {
  std::set<std::string_view> held, kept, needed;
  for (const LogicalTensor& tensor : checkpoint.manifest().tensors)
    if (tensor.info.role != Role::kWeight) held.insert(to_string(tensor.info.role));
  for (const KeptState& state : make_optimizer_spec(optim).kept) {
    kept.insert(state.role);
    for (const UnitSpec& unit : architecture.units)
      for (const TensorSpec& tensor : unit.tensors)
        if (!state.shape(unit, tensor).empty()) needed.insert(state.role);
  }
  if (std::ranges::includes(held, needed) && std::ranges::includes(kept, held)) return;
  const auto list = [](const auto& roles) {
    return roles.empty() ? "no optimizer state" : fmt::format("{}", fmt::join(roles, ", "));
  };
  fail(ErrorKind::kConfig,
       "resume from {}: it holds {}, and optim.name = \"{}\" as set now keeps {}; set the "
       "optimizer as it was, or start without --resume",
       checkpoint.path(), list(held), optim.name, list(kept));
}

// A tensor that was frozen has left no optimizer state.
void check_kept_of(const Checkpoint& checkpoint, const TensorInfo& info) {
  if (info.role == Role::kWeight || checkpoint.find(info.name, info.role) != nullptr) return;
  fail(ErrorKind::kConfig,
       "resume from {}: it has no optimizer state of {}, which was frozen; set train.frozen as it "
       "was, or start without --resume from its weights",
       checkpoint.path(), info.name);
}

// The newest checkpoint's name, which all ranks see; "": they see none.
std::string find_newest(const std::string& dir, Communicator& communicator) {
  const std::vector<uint64_t> steps = complete_steps(dir);
  const std::string mine = steps.empty() ? "" : step_name(steps.back());
  const std::vector<std::string> seen = gather_texts(communicator, mine);
  const auto in_words = [](const std::string& name) { return name.empty() ? "none" : name; };
  for (size_t rank = 1; rank < seen.size(); ++rank) {
    if (seen[rank] != seen[0])
      fail(ErrorKind::kIo,
           "resume from {}: the newest checkpoint there is {} for rank 0 and {} for rank {}; give "
           "all ranks the same directory",
           dir, in_words(seen[0]), in_words(seen[rank]), rank);
  }
  return mine;
}

// The newest checkpoint, each file of which one rank has verified.
Checkpoint open_verified(const std::string& dir, const std::string& newest,
                         const Communicator& communicator) {
  try {
    Checkpoint checkpoint = Checkpoint::open(dir);
    checkpoint.verify(communicator.rank(), communicator.world_size());
    return checkpoint;
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::kCorrupt) throw;
    fail(error.kind(), "{}; remove {}/{} to resume from the checkpoint before it", error.what(),
         dir, newest);
  }
}

}  // namespace

Retention retention_of(const CheckpointConfig& checkpoint) {
  return {.newest = checkpoint.keep, .multiples_of = checkpoint.keep_every};
}

CheckpointInfo checkpoint_info(Trainer& trainer, int world_size, const RunConfig& config,
                               const KeyValues& settings) {
  return {.step = uint64_t(trainer.steps_done()),
          .samples_consumed = trainer.samples_consumed(),
          .world_size = world_size,
          .strategy = config.parallel.strategy,
          .config = settings,
          .state = trainer.clipping().scaling()};
}

void save_state(Trainer& trainer, Communicator& communicator, const RunConfig& config,
                const KeyValues& settings) {
  const int rank = communicator.rank();
  const int world_size = communicator.world_size();
  const auto step = uint64_t(trainer.steps_done());
  CheckpointWriter writer(config.checkpoint.dir, {step, rank, world_size});
  std::vector<float> staged;
  const HeldState& state = trainer.state();
  for (const HeldTensor& tensor : all_of(state)) {
    by_pieces(state.own_share(tensor), staged, [&](size_t first, Memory memory) {
      state.read(tensor, first, memory);
      writer.add(info_of(tensor), tensor.elements.begin + first, memory);
    });
  }
  std::vector<FilePart> parts;
  for (const std::string& text : gather_texts(communicator, to_json(writer.finish())))
    parts.push_back(parse_file_part(text));
  if (rank == 0) {
    const CheckpointInfo info = checkpoint_info(trainer, world_size, config, settings);
    log_info("saved {}", publish_checkpoint(config.checkpoint.dir, parts, info,
                                            retention_of(config.checkpoint)));
  }
  communicator.barrier();
}

void stage_state(Trainer& trainer, const CheckpointInfo& info, StagedState& staged) {
  const HeldState& state = trainer.state();
  const std::vector<HeldTensor> tensors = all_of(state);
  size_t total = 0;
  for (const HeldTensor& tensor : tensors) total += state.own_share(tensor).count;
  staged.info = info;
  staged.shares.clear();
  staged.values.resize(total);
  Memory left = memory_of(staged.values);
  for (const HeldTensor& tensor : tensors) {
    const Range share = state.own_share(tensor);
    const size_t bytes = share.count * sizeof(float);
    if (bytes > 0) state.read(tensor, share.begin, left.slice(0, bytes));
    staged.shares.push_back({info_of(tensor), tensor.elements.begin + share.begin, share.count});
    left = left.slice(bytes, left.bytes - bytes);
  }
}

bool resume_state(Trainer& trainer, Communicator& communicator, const RunConfig& config,
                  const KeyValues& settings) {
  const std::string newest = find_newest(config.checkpoint.dir, communicator);
  if (newest.empty()) return false;
  const Checkpoint checkpoint = open_verified(config.checkpoint.dir, newest, communicator);
  check_agreement(checkpoint, settings);
  check_kept(checkpoint, config.optim, trainer.architecture());
  const CheckpointInfo& info = checkpoint.manifest().info;
  trainer.continue_from(int64_t(info.step), info.samples_consumed);
  std::vector<float> staged;
  for (const HeldTensor& tensor : all_of(trainer.state())) {
    const TensorInfo named = info_of(tensor);
    check_kept_of(checkpoint, named);
    by_pieces({0, tensor.elements.count}, staged, [&](size_t first, Memory memory) {
      checkpoint.read(named.name, named.role, tensor.elements.begin + first, memory);
      trainer.state().write(tensor, first, memory);
    });
  }
  trainer.clipping().continue_scaling(info.state);
  // No rank trains until every rank has verified its files.
  communicator.barrier();
  if (communicator.rank() == 0)
    log_info("resumed from {} (written by {} ranks, now {})", checkpoint.path(), info.world_size,
             communicator.world_size());
  return true;
}

}  // namespace gxp
