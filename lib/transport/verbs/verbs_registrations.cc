#include "lib/transport/verbs/verbs_registrations.h"

#include <algorithm>
#include <cerrno>

#include "lib/base/bytes.h"

namespace gxp {

namespace {

uintptr_t address_of(const std::byte* data) { return reinterpret_cast<uintptr_t>(data); }

}  // namespace

VerbsRegistrations::Use& VerbsRegistrations::Use::operator=(Use&& other) noexcept {
  if (this != &other) {
    reset();
    owner_ = std::exchange(other.owner_, nullptr);
    entry_ = other.entry_;
  }
  return *this;
}

void VerbsRegistrations::Use::reset() {
  if (owner_ != nullptr) std::exchange(owner_, nullptr)->release(entry_);
}

uint32_t VerbsRegistrations::Use::local_key(size_t device) const {
  return entry_->second.regions[device]->lkey;
}

uint32_t VerbsRegistrations::Use::remote_key(size_t device) const {
  return entry_->second.regions[device]->rkey;
}

VerbsRegistrations::~VerbsRegistrations() = default;

VerbsRegistrations::Use VerbsRegistrations::use(ConstMemory memory, VerbsOrder order) {
  uintptr_t begin = address_of(memory.data);
  uintptr_t end = begin + memory.bytes;
  auto entry = find(begin, end, order);
  if (entry == entries_.end()) {
    // Announced memory is registered whole, once.
    const auto after = kept_.upper_bound(begin);
    const bool kept = after != kept_.begin() && std::prev(after)->second >= end;
    if (kept) std::tie(begin, end) = *std::prev(after);
    entry = add(begin, {.end = end, .kept = kept, .order = order, .space = memory.space});
  }
  ++entry->second.uses;
  entry->second.last_use = ++clock_;
  return {*this, entry};
}

void VerbsRegistrations::keep(ConstMemory memory) {
  kept_[address_of(memory.data)] = address_of(memory.data) + memory.bytes;
}

void VerbsRegistrations::forget(ConstMemory memory) noexcept {
  const uintptr_t begin = address_of(memory.data);
  kept_.erase(begin);
  for (auto entry = entries_.lower_bound(begin);
       entry != entries_.end() && entry->first < begin + memory.bytes;) {
    const auto next = std::next(entry);
    entry->second.kept = false;
    if (entry->second.uses == 0) entries_.erase(entry);
    entry = next;
  }
}

VerbsRegistrations::Entries::iterator VerbsRegistrations::find(uintptr_t begin, uintptr_t end,
                                                               VerbsOrder order) {
  for (auto entry = entries_.upper_bound(begin); entry != entries_.begin();) {
    --entry;
    if (entry->second.end >= end && entry->second.order == order) return entry;
  }
  return entries_.end();
}

VerbsRegistrations::Entries::iterator VerbsRegistrations::add(uintptr_t begin, Entry entry) {
  if (entry.kept && entries_.size() >= most_kept_) drop_oldest();
  while (!register_all(entry, begin)) {
    const int error = errno;
    if (drop_oldest()) continue;
    fail(ErrorKind::kDevice,
         "register {} with {}: {}; is the limit of locked memory (ulimit -l, LimitMEMLOCK) high "
         "enough?",
         format_bytes(entry.end - begin), devices_[entry.regions.size()]->name(),
         system_text(error));
  }
  return entries_.emplace(begin, std::move(entry));
}

// A device that knows no relaxed ordering passes over it. GPU memory is also read, by a flush.
ibv_mr* VerbsRegistrations::register_with(const VerbsDevice& device, uintptr_t begin,
                                          const Entry& entry, const DmaBuf& exported) const {
  const int relaxed = entry.order == VerbsOrder::kRelaxed ? IBV_ACCESS_RELAXED_ORDERING : 0;
  const int read = entry.space == MemorySpace::kHost ? 0 : IBV_ACCESS_REMOTE_READ;
  const int access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | relaxed | read;
  const size_t bytes = entry.end - begin;
  if (exported.file.valid())
    return device.verbs().reg_dmabuf_mr(device.domain(), exported.offset, bytes, begin,
                                        exported.file.get(), access);
  return device.verbs().reg_mr_iova2(device.domain(), reinterpret_cast<void*>(begin), bytes, begin,
                                     unsigned(access));
}

// False: one device refuses, for errno's reason; those before it stay in the entry.
bool VerbsRegistrations::register_all(Entry& entry, uintptr_t begin) {
  DmaBuf exported;  // the devices keep the memory, not the file
  if (entry.space != MemorySpace::kHost && gpu_.reached.method == GpuDirectMethod::kDmaBuf)
    exported = gpu_.device->export_memory(
        {reinterpret_cast<const std::byte*>(begin), entry.end - begin, entry.space});
  while (entry.regions.size() < devices_.size()) {
    const VerbsDevice& device = *devices_[entry.regions.size()];
    ibv_mr* const region = register_with(device, begin, entry, exported);
    if (region == nullptr) return false;
    entry.regions.emplace_back(region, device.verbs().dereg_mr);
  }
  return true;
}

bool VerbsRegistrations::drop_oldest() {
  auto oldest = entries_.end();
  for (auto entry = entries_.begin(); entry != entries_.end(); ++entry) {
    if (entry->second.uses > 0) continue;
    if (oldest == entries_.end() || entry->second.last_use < oldest->second.last_use)
      oldest = entry;
  }
  if (oldest == entries_.end()) return false;
  entries_.erase(oldest);
  return true;
}

void VerbsRegistrations::release(Entries::iterator entry) noexcept {
  if (--entry->second.uses == 0 && !entry->second.kept) entries_.erase(entry);
}

}  // namespace gxp
