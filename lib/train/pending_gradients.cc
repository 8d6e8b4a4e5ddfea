#include "lib/train/pending_gradients.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <utility>

#include "lib/base/error.h"
#include "lib/train/model/weights_file.h"

namespace gxp {
namespace {

size_t elements_of_copy(const HeldTensor& tensor) { return tensor.spec->count(); }

int hosts_of(const HeldTensor& tensor) { return int(tensor.shape.front()); }

// The tensor's elements of it, whichever copy it is.
Range in_copy(const HeldTensor& tensor) {
  return {tensor.elements.begin % elements_of_copy(tensor), tensor.elements.count};
}

bool is_zero(const Checkpoint& checkpoint, const LogicalTensor& tensor) {
  constexpr uint64_t kBlock = uint64_t{1} << 20;
  std::vector<float> values;
  for (uint64_t done = 0; done < tensor.info.count(); done += values.size()) {
    values.resize(std::min(kBlock, tensor.info.count() - done));
    checkpoint.read(tensor, done, memory_of(values));
    if (std::ranges::any_of(values, [](float value) { return value != 0; })) return false;
  }
  return true;
}

// On one host a step leaves nothing pending.
bool is_pending(const Checkpoint& checkpoint, const LogicalTensor& tensor) {
  const TensorInfo& info = tensor.info;
  if (info.role != Role::kCodecResidual) return false;
  const bool of_one_host = !info.shape.empty() && info.shape.front() == 1;
  return !of_one_host || info.dtype != StorageDType::kF32 || !is_zero(checkpoint, tensor);
}

}  // namespace

void check_pending(const Checkpoint& checkpoint, const std::string& codec, bool adds_them) {
  if (adds_them || std::ranges::none_of(
                       checkpoint.manifest().tensors,
                       [&](const LogicalTensor& tensor) { return is_pending(checkpoint, tensor); }))
    return;
  fail(
      ErrorKind::kConfig,
      "resume from {}: it holds parts of gradients that its run's comm.codec had not sent yet, and "
      "{} cannot add them to the next step's; {}, or start without --resume, with model.init for "
      "its weights",
      checkpoint.path(), codec == "none" ? "a run with comm.codec none" : "one rank",
      codec == "none" ? "set comm.codec as it was" : "use at least two ranks");
}

PendingGradients::PendingGradients(const Checkpoint& checkpoint, HeldState& state)
    : state_(state), act_("resume from " + checkpoint.path()) {
  state.clear_residuals();
  std::map<std::string, std::vector<HeldTensor>> parts;  // by name
  for (HeldTensor& tensor : state.residuals())
    parts[tensor.spec->name].push_back(std::move(tensor));
  for (auto& [name, held] : parts) need(checkpoint, std::move(held));
}

void PendingGradients::need(const Checkpoint& checkpoint, std::vector<HeldTensor> parts) {
  const HeldTensor& any = parts.front();
  const LogicalTensor* found = checkpoint.find(any.spec->name, Role::kCodecResidual);
  if (found == nullptr) return;
  std::vector<uint64_t> shape(found->info.shape);
  const uint64_t hosts = shape.empty() ? 0 : shape.front();
  if (!shape.empty()) shape.erase(shape.begin());
  if (hosts == 0 || !std::ranges::equal(shape, any.spec->shape) ||
      found->info.dtype != StorageDType::kF32)
    fail(ErrorKind::kConfig,
         "resume from {}: the {} of {} is {} ({}), must be F32 of a number of hosts and ({})",
         checkpoint.path(), to_string(Role::kCodecResidual), any.spec->name,
         to_string(found->info.dtype), fmt::join(found->info.shape, ", "),
         fmt::join(any.spec->shape, ", "));
  const bool own_copy = int(hosts) == hosts_of(any);
  if (!own_copy && state_.host() != 0) return;
  size_t begin = elements_of_copy(any), end = 0;
  for (const HeldTensor& part : parts) {
    begin = std::min(begin, in_copy(part).begin);
    end = std::max(end, in_copy(part).end());
  }
  const size_t first = own_copy ? size_t(state_.host()) : 0;
  const size_t last = own_copy ? first : size_t(hosts) - 1;
  begin += first * elements_of_copy(any);
  end += last * elements_of_copy(any);
  needed_.push_back({size_t(found - checkpoint.manifest().tensors.data()), {begin, end - begin}});
  held_.push_back(std::move(parts));
  hosts_.push_back(int(hosts));
}

void PendingGradients::take(size_t part, size_t first, ConstMemory elements) {
  require_finite(elements, act_,
                 fmt::format("the codec's residual of {}", held_[part].front().spec->name),
                 needed_[part].elements.begin + first);
  const Range taken{needed_[part].elements.begin + first, elements.bytes / sizeof(float)};
  for (const HeldTensor& tensor : held_[part]) {
    for (int host = 0; host < hosts_[part]; ++host) {
      const Range own = in_copy(tensor);
      const size_t copy = size_t(host) * elements_of_copy(tensor);
      const Range common = intersection(taken, {copy + own.begin, own.count});
      if (common.count == 0) continue;
      put(tensor, common.begin - copy - own.begin,
          elements.slice((common.begin - taken.begin) * sizeof(float),
                         common.count * sizeof(float)));
    }
  }
}

// Own copies as they are, to the bit; others are added to those before them.
void PendingGradients::put(const HeldTensor& tensor, size_t first, ConstMemory values) {
  std::vector<float> sum(values.bytes / sizeof(float));
  const std::span added(reinterpret_cast<const float*>(values.data), sum.size());
  state_.read(tensor, first, memory_of(sum));
  for (size_t i = 0; i < sum.size(); ++i) sum[i] = sum[i] == 0 ? added[i] : sum[i] + added[i];
  state_.write(tensor, first, memory_of(std::as_const(sum)));
}

}  // namespace gxp
