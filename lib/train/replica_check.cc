#include "lib/train/replica_check.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <map>
#include <string>

#include "lib/base/hash.h"
#include "lib/collective/gather_texts.h"

namespace gxp {
namespace {

// Of an offloaded tensor, at a time.
constexpr size_t kPieceElements = size_t{4} << 20;

std::string name_of(const HeldTensor& tensor) {
  return tensor.state == nullptr ? tensor.spec->name
                                 : fmt::format("{} of {}", tensor.state->role, tensor.spec->name);
}

std::string in_words(const std::vector<int>& ranks) {
  return fmt::format("rank{} {}", ranks.size() == 1 ? "" : "s", fmt::join(ranks, ", "));
}

// "" if all hold the same.
std::string describe_difference(const std::string& tensor, const std::vector<int>& ranks,
                                const std::function<uint64_t(int)>& value_of) {
  std::map<uint64_t, std::vector<int>> holders;  // of each value
  for (const int rank : ranks) holders[value_of(rank)].push_back(rank);
  if (holders.size() == 1) return "";
  const auto most =
      std::ranges::max_element(holders, {}, [](const auto& entry) { return entry.second.size(); });
  if (most->second.size() * 2 <= ranks.size())
    return fmt::format("{} hold different values of {}, and no value is that of most of them",
                       in_words(ranks), tensor);
  std::vector<int> others;
  for (const auto& [value, those] : holders)
    if (value != most->first) others.insert(others.end(), those.begin(), those.end());
  std::ranges::sort(others);
  return fmt::format("{} hold{} other values of {} than {}", in_words(others),
                     others.size() == 1 ? "s" : "", tensor, in_words(most->second));
}

}  // namespace

ReplicaCheck::ReplicaCheck(Trainer& trainer, Communicator& communicator, Backend& backend)
    : trainer_(trainer), communicator_(communicator), backend_(backend) {
  if (communicator.world_size() == 1) return;
  for (const HeldTensor& tensor : trainer.state().weights()) add(tensor);
  for (const HeldTensor& tensor : trainer.state().kept()) add(tensor);
  // Frozen parameters that are not sharded, though the optimizer is: shards of them are above.
  const ShardedMemory& memory = trainer.memory();
  if (!memory.is_sharded() || memory.program.parameter_shards > 1) return;
  for (const TensorPart& part : memory.all_parts) {
    const TensorSpec& spec = memory.spec_of(part);
    if (!spec.frozen) continue;
    tensors_[size_t(Copies::kEverywhere)].push_back(
        {.spec = &spec,
         .shape = spec.shape,
         .elements = part.elements,
         .everywhere = true,
         .wrap = memory.wrap_of(part),
         .buffer = memory.program.parameters,
         .begin = memory.parameter_places().part(part).begin});
  }
}

void ReplicaCheck::add(const HeldTensor& tensor) {
  const ShardedMemory& memory = trainer_.memory();
  const bool everywhere = tensor.everywhere || !memory.is_sharded();
  if (!everywhere && memory.program.optimizer_shards == communicator_.world_size()) return;
  tensors_[size_t(everywhere ? Copies::kEverywhere : Copies::kReplicas)].push_back(tensor);
}

std::vector<int> ReplicaCheck::holders(Copies copies, int rank) const {
  return trainer_.memory().groups.members(
      copies == Copies::kEverywhere ? RankGroup::kWorld : RankGroup::kReplicas, rank);
}

uint64_t ReplicaCheck::fingerprint_of_offloaded(const HeldTensor& tensor) {
  std::vector<std::byte> staged;
  uint64_t sum = 0;
  for (size_t first = 0; first < tensor.elements.count; first += kPieceElements) {
    const size_t count = std::min(kPieceElements, tensor.elements.count - first);
    staged.resize(count * size_of(tensor.dtype()));
    trainer_.state().read(tensor, first, memory_of(staged));
    const ConstTensor piece(memory_of(std::as_const(staged)), tensor.dtype(), Shape{count});
    sum = mix64(sum) + backend_.on_host().fingerprint({&piece, 1});
  }
  return sum;
}

uint64_t ReplicaCheck::fingerprint(std::span<const HeldTensor> tensors) {
  if (!trainer_.offloaded().is_empty()) {
    uint64_t sum = 0;
    for (const HeldTensor& tensor : tensors) sum = mix64(sum) + fingerprint_of_offloaded(tensor);
    return sum;
  }
  std::vector<ConstTensor> parts;
  for (const HeldTensor& tensor : tensors)
    parts.emplace_back(
        trainer_.memory().tensor(tensor.buffer).rows(tensor.begin, tensor.elements.count));
  return backend_.ops->fingerprint(parts);
}

std::vector<std::vector<uint64_t>> ReplicaCheck::gather(const std::vector<uint64_t>& own) const {
  const ConstMemory bytes = memory_of(own);
  std::vector<std::vector<uint64_t>> all;
  for (const std::string& text :
       gather_texts(communicator_, {reinterpret_cast<const char*>(bytes.data), bytes.bytes})) {
    std::vector<uint64_t>& numbers = all.emplace_back(text.size() / sizeof(uint64_t));
    std::copy_n(text.data(), text.size(), reinterpret_cast<char*>(numbers.data()));
  }
  return all;
}

void ReplicaCheck::check() {
  if (communicator_.world_size() == 1) return;
  const std::vector<std::vector<uint64_t>> all =
      gather({fingerprint(tensors_[0]), fingerprint(tensors_[1])});
  for (const Copies copies : {Copies::kEverywhere, Copies::kReplicas}) {
    for (size_t rank = 0; rank < all.size(); ++rank) {
      const auto first = size_t(holders(copies, int(rank)).front());
      if (all[rank][size_t(copies)] != all[first][size_t(copies)]) fail_on(copies);
    }
  }
}

void ReplicaCheck::fail_on(Copies copies) {
  const std::vector<HeldTensor>& tensors = tensors_[size_t(copies)];
  std::vector<uint64_t> own;
  for (const HeldTensor& tensor : tensors) own.push_back(fingerprint({&tensor, 1}));
  const std::vector<std::vector<uint64_t>> all = gather(own);
  const std::vector<int> ranks = holders(copies, communicator_.rank());
  std::string found;  // among this rank's copies
  for (size_t t = 0; t < tensors.size() && found.empty(); ++t)
    found = describe_difference(name_of(tensors[t]), ranks,
                                [&](int rank) { return all[size_t(rank)][t]; });
  std::vector<std::string> of_all = gather_texts(communicator_, found);
  std::erase(of_all, "");
  fail(ErrorKind::kDevice,
       "step {}: {}; a faulty memory or device has changed bits, or ranks compute with different "
       "instructions. Nothing of this step is saved; --resume continues from the newest checkpoint",
       trainer_.steps_done(),
       of_all.empty() ? "ranks that should hold the same weights did not when they were first "
                        "compared, but did when read again"
                      : of_all[0]);
}

}  // namespace gxp
