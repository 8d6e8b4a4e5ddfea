#include "lib/train/training_state.h"

#include <algorithm>
#include <iterator>

#include "lib/base/log.h"
#include "lib/ckpt/native/checkpoint.h"
#include "lib/ckpt/native/full_layout.h"
#include "lib/ckpt/native/writer.h"
#include "lib/ckpt/optimizer_record.h"
#include "lib/collective/communicator.h"
#include "lib/collective/gather_texts.h"
#include "lib/config/toml_reader.h"
#include "lib/optim/lr_schedule.h"
#include "lib/shard/layout.h"
#include "lib/train/data_checks.h"
#include "lib/train/model/weights_file.h"
#include "lib/train/pending_gradients.h"
#include "lib/train/replica/shared_reading.h"
#include "lib/train/resume_checks.h"

namespace gxp {
namespace {

// Elements that are copied at a time from the state, which may be offloaded, to a file.
constexpr size_t kSentElements = size_t{4} << 20;

// act(begin, memory) for the elements of `share`, piece by piece, in order.
template <class Act>
void by_pieces(const Range& share, size_t element_bytes, std::vector<std::byte>& staged, Act act) {
  for (size_t done = 0; done < share.count; done += kSentElements) {
    staged.resize(std::min(kSentElements, share.count - done) * element_bytes);
    act(share.begin + done, memory_of(staged));
  }
}

StorageDType stored_type(DType dtype) {
  if (dtype == DType::kBF16) return StorageDType::kBF16;
  return dtype == DType::kU8 ? StorageDType::kU8 : StorageDType::kF32;
}

// The checkpoint's tensors: the weights, then the optimizer state, then what is pending.
std::vector<HeldTensor> all_of(const HeldState& state) {
  std::vector<HeldTensor> all = state.weights();
  std::ranges::move(state.kept(), std::back_inserter(all));
  std::ranges::move(state.residuals(), std::back_inserter(all));
  return all;
}

TensorInfo info_of(const HeldTensor& tensor) {
  const Role role =
      tensor.state == nullptr ? Role::kWeight : parse_role(tensor.state->role).value();
  return {tensor.spec->name,
          role,
          stored_type(tensor.dtype()),
          {tensor.shape.begin(), tensor.shape.end()}};
}

// One of this rank's files.
FilePart write_file(const HeldState& state, const std::string& dir, const WriterRank& rank) {
  CheckpointWriter writer(dir, rank);
  std::vector<std::byte> staged;
  for (const HeldTensor& tensor : all_of(state)) {
    if (tensor.spec->frozen != rank.frozen) continue;
    by_pieces(state.own_share(tensor), size_of(tensor.dtype()), staged,
              [&](size_t first, Memory memory) {
                state.read(tensor, first, memory);
                writer.add(info_of(tensor), tensor.elements.begin + first, memory);
              });
  }
  return writer.finish();
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

// Calls act() on the newest checkpoint; damage in it becomes an error that names the remedy.
template <class Act>
auto rethrow_with_remedy(const std::string& dir, const std::string& newest, Act act) {
  try {
    return act();
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::kCorrupt) throw;
    fail(error.kind(), "{}; remove {}/{} to resume from the checkpoint before it", error.what(),
         dir, newest);
  }
}

// Rounded to nearest; what is bf16 already stays as it is.
ConstMemory as_bf16(ConstMemory f32, std::vector<BFloat16>& rounded) {
  const std::span values(reinterpret_cast<const float*>(f32.data), f32.bytes / sizeof(float));
  rounded.resize(values.size());
  std::ranges::transform(values, rounded.begin(), [](float value) { return BFloat16(value); });
  return memory_of(std::as_const(rounded));
}

// [collective] Fills all that the rank holds.
void load(const Checkpoint& checkpoint, Communicator& communicator, HeldState& state,
          std::span<const int> readers = {}) {
  std::vector<HeldTensor> held = state.weights();
  std::ranges::move(state.kept(), std::back_inserter(held));
  std::vector<const LogicalTensor*> saved;
  std::vector<NeededPart> needed;
  for (const HeldTensor& tensor : held) {
    saved.push_back(&find_resumed(checkpoint, info_of(tensor)));
    needed.push_back(
        {size_t(saved.back() - checkpoint.manifest().tensors.data()), tensor.elements});
  }
  PendingGradients pending(checkpoint, state);
  std::ranges::copy(pending.needed(), std::back_inserter(needed));
  const std::string act = "resume from " + checkpoint.path();
  std::vector<float> converted;
  std::vector<BFloat16> rounded;
  read_shared(
      checkpoint, communicator, needed,
      [&](size_t part, size_t first, ConstMemory elements) {
        if (part >= held.size()) return pending.take(part - held.size(), first, elements);
        if (held[part].dtype() == DType::kU8) return state.write(held[part], first, elements);
        const ConstMemory values = as_f32(elements, saved[part]->info.dtype, converted);
        require_finite(
            values, act,
            fmt::format("the {} of {}", to_string(saved[part]->info.role), saved[part]->info.name),
            held[part].elements.begin + first);
        state.write(held[part], first,
                    held[part].dtype() == DType::kBF16 ? as_bf16(values, rounded) : values);
      },
      readers);
}

void resume_from(const Checkpoint& checkpoint, std::span<const int> readers, Trainer& trainer,
                 Communicator& communicator, const RunConfig& config, const KeyValues& settings) {
  check_resumable(checkpoint, config, settings, trainer.architecture());
  check_pending(checkpoint, config.comm.codec, trainer.program().residuals != kNoBuffer);
  check_resumed_data(checkpoint, trainer.train_data(), config.data.changed,
                     communicator.rank() == 0);
  const CheckpointInfo& info = checkpoint.manifest().info;
  trainer.continue_from(int64_t(info.step), samples_before(info, trainer.samples_per_step()));
  load(checkpoint, communicator, trainer.state(), readers);
  trainer.clipping().continue_from(info.state);
  // No rank trains until every rank has verified its files.
  communicator.barrier();
  if (communicator.rank() != 0) return;
  log_info("resumed from {} (written by {} ranks, now {})",
           readers.empty() ? checkpoint.path() : fmt::format("the replica of step {}", info.step),
           info.world_size, communicator.world_size());
  report_resumed(checkpoint, config, settings, trainer.samples_per_step());
}

}  // namespace

Retention retention_of(const CheckpointConfig& checkpoint) {
  return {.newest = checkpoint.keep, .multiples_of = checkpoint.keep_every};
}

CheckpointInfo checkpoint_info(Trainer& trainer, int world_size, const RunConfig& config,
                               const KeyValues& settings) {
  KeyValues state = trainer.clipping().saved_state();
  std::ranges::move(data_state(trainer.train_data()), std::back_inserter(state));
  const double rate =
      learning_rate(config.lr_schedule, config.optim.lr, trainer.steps_done(), config.train.steps);
  state.emplace_back(kLastRate, to_toml(rate));
  return {.step = uint64_t(trainer.steps_done()),
          .samples_consumed = trainer.samples_consumed(),
          .world_size = world_size,
          .strategy = config.parallel.strategy,
          .config = settings,
          .state = std::move(state)};
}

std::vector<bool> files_of_a_rank(const Architecture& architecture) {
  for (const UnitSpec& unit : architecture.units) {
    if (std::ranges::any_of(unit.tensors, &TensorSpec::frozen)) return {false, true};
  }
  return {false};
}

std::vector<std::string> names_of(const Architecture& architecture) {
  std::vector<std::string> names;
  for (const UnitSpec& unit : architecture.units) {
    for (const TensorSpec& tensor : unit.tensors) names.push_back(tensor.name);
  }
  return names;
}

std::vector<FilePart> lay_out(std::vector<FilePart> parts, const CheckpointConfig& checkpoint,
                              const WriterRank& rank, const std::vector<std::string>& names,
                              const std::stop_token& stop) {
  if (checkpoint.layout != CheckpointLayout::kFull) return parts;
  const auto joined = join_parts(checkpoint.dir, rank, parts, names, stop);
  if (!joined) return {};
  return {*joined};
}

void save_state(Trainer& trainer, Communicator& communicator, const RunConfig& config,
                const KeyValues& settings) {
  WriterRank rank{uint64_t(trainer.steps_done()), communicator.rank(), communicator.world_size()};
  std::vector<FilePart> parts;
  for (const bool frozen : files_of_a_rank(trainer.architecture())) {
    rank.frozen = frozen;
    const FilePart mine = write_file(trainer.state(), config.checkpoint.dir, rank);
    std::vector<FilePart> all;
    for (const std::string& text : gather_texts(communicator, to_json(mine)))
      all.push_back(parse_file_part(text));
    if (rank.rank != 0) continue;
    std::ranges::move(
        lay_out(std::move(all), config.checkpoint, rank, names_of(trainer.architecture()), {}),
        std::back_inserter(parts));
  }
  if (rank.rank == 0) {
    const CheckpointInfo info = checkpoint_info(trainer, rank.world_size, config, settings);
    log_info("saved {}", publish_checkpoint(config.checkpoint.dir, parts, info,
                                            retention_of(config.checkpoint)));
  }
  communicator.barrier();
}

void reserve_staging(Trainer& trainer, StagedState& staged) {
  size_t total = 0;
  for (const HeldTensor& tensor : all_of(trainer.state()))
    total += trainer.state().own_share(tensor).count * size_of(tensor.dtype());
  staged.values.resize(total);
}

void stage_state(Trainer& trainer, const CheckpointInfo& info, StagedState& staged) {
  const HeldState& state = trainer.state();
  reserve_staging(trainer, staged);
  staged.info = info;
  staged.shares.clear();
  Memory left = memory_of(staged.values);
  for (const HeldTensor& tensor : all_of(state)) {
    const Range share = state.own_share(tensor);
    const size_t bytes = share.count * size_of(tensor.dtype());
    if (bytes > 0) state.read(tensor, share.begin, left.slice(0, bytes));
    staged.shares.push_back(
        {info_of(tensor), tensor.elements.begin + share.begin, share.count, tensor.spec->frozen});
    left = left.slice(bytes, left.bytes - bytes);
  }
}

uint64_t load_newest_weights(RankModel& model, Communicator& communicator,
                             const KeyValues& settings) {
  const std::string& dir = model.config.checkpoint.dir;
  const std::string newest = find_newest(dir, communicator);
  if (newest.empty()) fail(ErrorKind::kIo, "resume from {}: there is no checkpoint", dir);
  const auto checkpoint = rethrow_with_remedy(dir, newest, [&] { return Checkpoint::open(dir); });
  check_loadable(checkpoint, settings, model.plan.architecture);
  const uint64_t step = checkpoint.manifest().info.step;
  model.sharded.steps = int64_t(step);
  rethrow_with_remedy(dir, newest, [&] { load(checkpoint, communicator, model.state); });
  if (communicator.rank() == 0) log_info("loaded the weights of {}", checkpoint.path());
  return step;
}

bool resume_state(Trainer& trainer, Communicator& communicator, const RunConfig& config,
                  const KeyValues& settings) {
  const std::string newest = find_newest(config.checkpoint.dir, communicator);
  if (newest.empty()) return false;
  rethrow_with_remedy(config.checkpoint.dir, newest, [&] {
    resume_from(Checkpoint::open(config.checkpoint.dir), {}, trainer, communicator, config,
                settings);
  });
  return true;
}

void resume_replica(Trainer& trainer, Communicator& communicator, const RunConfig& config,
                    const KeyValues& settings, const FoundReplica& replica) {
  resume_from(replica.checkpoint, replica.readers, trainer, communicator, config, settings);
}

}  // namespace gxp
