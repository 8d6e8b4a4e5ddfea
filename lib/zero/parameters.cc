#include "lib/zero/parameters.h"

#include <span>
#include <utility>
#include <vector>

#include "lib/base/hash.h"

namespace gxp {
namespace {

// Tells this use of the seed from the others.
constexpr uint64_t kRounding = 0x726f756e64696e67;  // "rounding"

}  // namespace

uint64_t rounding_key(uint64_t seed, const TensorSpec& tensor) {
  const uint64_t name = hash64(std::as_bytes(std::span(tensor.name)));
  return mix64(mix64(seed ^ kRounding) ^ name);
}

Parameters::Parameters(ShardedMemory& sharded, Ops& ops, Ops& host_ops, const TrainConfig& train)
    : sharded_(sharded),
      ops_(ops),
      host_ops_(host_ops),
      is_stochastic_(train.rounding == Rounding::kStochastic),
      seed_(train.seed) {}

void Parameters::round_with(Ops& ops, const RoundedPart& part, int64_t step) const {
  if (is_stochastic_ && !part.tensor->frozen)
    ops.round_stochastically(
        part.to, part.from,
        {mix64(rounding_key(seed_, *part.tensor) + uint64_t(step)), part.first});
  else
    ops.convert(part.to, part.from);
}

Tensor Parameters::persistent(int wrap) const {
  const StepProgram& program = sharded_.program;
  return FlatShards{sharded_.parameter_places(), sharded_.tensor(program.parameters)}.wrap(wrap);
}

Range Parameters::own_in_persistent(int wrap) const {
  const StepProgram& program = sharded_.program;
  const int parts = program.optimizer_shards / program.parameter_shards;
  const int part = sharded_.groups.shard_of(sharded_.rank, program.optimizer_shards) % parts;
  const size_t count = sharded_.parameter_places().wrap(wrap).count / size_t(parts);
  return {size_t(part) * count, count};
}

size_t Parameters::own_begin(int wrap) const {
  return sharded_.parameter_places().wrap(wrap).begin + own_in_persistent(wrap).begin;
}

Tensor Parameters::own(int wrap) const {
  const Range own = own_in_persistent(wrap);
  return persistent(wrap).rows(own.begin, own.count);
}

std::function<void()> Parameters::bind(const Op& op) {
  return op.kind == OpKind::kRoundParameters ? bind_round(op)
                                             : bind_gather(op, sharded_.program, sharded_.memory);
}

std::function<void()> Parameters::bind_round(const Op& op) {
  const ShardRanges places = sharded_.places();
  const Tensor master = sharded_.tensor(sharded_.program.master_weights);
  const Tensor rounded = own(op.wrap);
  const size_t wrap_begin = places.wrap(op.wrap).begin;
  std::vector<RoundedPart> parts;
  Range last{};
  for (const TensorPart& part : sharded_.own_parts) {
    if (sharded_.wrap_of(part) != op.wrap) continue;  // and so it is not frozen
    const Range at = places.part(part);
    // Round-to-nearest ignores tensor boundaries, so adjacent parts are merged.
    const bool continues = !is_stochastic_ && !parts.empty() && at.begin == last.end();
    if (continues) parts.pop_back();
    last = continues ? joined(last, at) : at;
    parts.push_back({rounded.rows(last.begin - wrap_begin, last.count),
                     master.rows(last.begin, last.count), &sharded_.spec_of(part),
                     part.elements.begin});
  }
  return [this, parts = std::move(parts)] {
    for (const RoundedPart& part : parts) round(part, sharded_.steps + 1);
  };
}

std::function<void()> Parameters::bind_gather(const Op& op, const StepProgram& program,
                                              const ProgramMemory& memory) {
  const RankGroup group = op.collective.group;
  const size_t count = sharded_.plan.layout.wraps[size_t(op.wrap)].flat.count;
  const auto view = [&](const FlatView& at, int shards) {
    return memory.tensor(at.buffer).rows(at.begin, count / size_t(shards));
  };
  if (op.parameters.shard.buffer != kNoBuffer) {
    const Tensor shard = view(op.parameters.shard, program.parameter_shards);
    const Tensor whole = view(op.parameters.own, 1);
    if (!op.collective.codec.empty()) return sharded_.compressed.bind_gather(op, whole, shard);
    return sharded_.calls.bind(group, Collective::kAllGather, whole, shard);
  }
  // In place, from the ranks that own the parts.
  const Tensor data = program.parameter_shards > 1
                          ? persistent(op.wrap)
                          : sharded_.part_of_group(view(op.parameters.own, 1), group);
  return sharded_.calls.bind(group, Collective::kAllGather, data);
}

void Parameters::write(int wrap, size_t first, RoundedPart part) {
  const size_t count = part.from.count();
  std::vector<uint16_t> halves(count);
  part.to = Tensor(memory_of(halves), sharded_.plan.architecture.compute, Shape{count});
  round_with(host_ops_, part, sharded_.steps + 1);
  sharded_.offloaded.write(sharded_.program.parameters, {own_begin(wrap) + first, count},
                           part.to.memory);
}

void Parameters::read(int wrap, size_t first, const Tensor& to) const {
  const size_t count = to.count();
  std::vector<uint16_t> halves(count);
  sharded_.offloaded.read(sharded_.program.parameters, {own_begin(wrap) + first, count},
                          memory_of(halves));
  host_ops_.convert(to, {memory_of(halves), sharded_.plan.architecture.compute, Shape{count}});
}

void Parameters::publish_frozen() {
  if (!std::exchange(frozen_are_stale_, false)) return;
  const std::vector<FsdpUnit>& wraps = sharded_.plan.layout.wraps;
  for (int wrap = 0; wrap < int(wraps.size()); ++wrap) {
    if (!wraps[size_t(wrap)].frozen) continue;
    for (const RankGroup group : sharded_.program.publishing_groups()) gather_frozen(wrap, group);
  }
  sharded_.lanes[Lane::kComm].finish(Deadline::after(kComputeTimeout));
}

void Parameters::gather_frozen(int wrap, RankGroup group) {
  Op op;
  op.kind = OpKind::kGatherParameters;
  op.wrap = wrap;
  op.collective.group = group;
  op.parameters.own = {sharded_.program.parameters, sharded_.parameter_places().wrap(wrap).begin};
  bind_gather(op, sharded_.program, sharded_.memory)();
}

void Parameters::publish() {
  publish_frozen();
  const auto finish = [this] {
    sharded_.lanes[Lane::kCompute].finish(Deadline::after(kComputeTimeout));
  };
  for (const Op& op : sharded_.program.ops) {
    if (op.kind == OpKind::kRoundParameters) bind_round(op)();
    if (!stale_ || !op.parameters.publishes) continue;
    finish();  // what the comm lane sends
    bind_gather(op, sharded_.program, sharded_.memory)();
    sharded_.lanes[Lane::kComm].finish(Deadline::after(kComputeTimeout));
  }
  finish();
  stale_ = false;
}

}  // namespace gxp
