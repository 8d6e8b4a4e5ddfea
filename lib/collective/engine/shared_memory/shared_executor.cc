#include "lib/collective/engine/shared_memory/shared_executor.h"

#include <bit>
#include <utility>

namespace gxp {

using enum SharedMethod;

SharedExecutor::SharedExecutor(SharedArena& arena, FlightRecorder& recorder,
                               std::vector<int> members, int rank, int group)
    : sync_(arena, recorder, std::move(members), rank, group) {}

SharedExecutor::CachedCall& SharedExecutor::find(const Call& call) {
  for (auto& cached : cached_) {
    if (cached && same_signature(cached->shape.call, call)) return *cached;
  }
  auto& cached = cached_[next_cached_++ % cached_.size()];
  const int ranks = sync_.world_size();
  cached.emplace(
      CachedCall{SharedCall(call, ranks), {std::vector<BufferPlacement>(size_t(ranks))}});
  return *cached;
}

Invocation SharedExecutor::begin(const Call& call, const SharedCall& shape, ConstMemory input,
                                 Memory output, Deadline deadline) {
  const uint32_t index = sync_.begin();
  return {.call = call,
          .shape = shape,
          .rank = sync_.rank(),
          .index = index,
          .stamp = shape.stamp(call.sequence, index),
          .input_data = input.data,
          .output_data = output.data,
          .deadline = deadline};
}

bool SharedExecutor::execute(const Call& call, ConstMemory input, Memory output, Deadline deadline,
                             const SharedMethods& methods) {
  if (methods.communicator == kMessages && methods.ordinary == kMessages) return false;
  CachedCall& cached = find(call);
  const Invocation inv = begin(call, cached.shape, input, output, deadline);
  bool done = true;
  const Chosen chosen = copies_anyway(inv, cached, methods)
                            ? Chosen{.method = kCopied, .needs_lines = false}
                            : choose_by_lines(inv, cached, methods);
  if (!chosen.needs_lines) {
    copied_.run(inv);
  } else if (chosen.all_copied) {
    copied_.take(inv);
  } else if (chosen.buffers != nullptr && DirectMethod::can_run(inv, *chosen.buffers)) {
    direct_.run(inv, *chosen.buffers);
  } else if (chosen.method == kMessages) {
    done = false;
  } else if (chosen.method == kTiles || !copied_.fits(inv)) {
    tiled_.run(inv);
  } else {
    if (!chosen.is_copied) copied_.copy(inv);
    sync_.synchronise(inv);
    copied_.take(inv);
  }
  if (chosen.is_timed && timed_) timed_->times.left_ns = GroupSync::now_ns();
  sync_.end(inv);
  return done;
}

// Whether a small input is copied wherever it lies: it fits a line, or copies have been the fastest
// for the memory of the last such call.
bool SharedExecutor::copies_anyway(const Invocation& inv, CachedCall& cached,
                                   const SharedMethods& methods) {
  // What fits a line must not lie where the line says where the buffers are.
  if (inv.shape.largest_input <= 2 * SharedLine::kBytes) return true;
  if (!copied_.fits(inv)) return false;
  if (methods.communicator == kCopied && methods.ordinary == kCopied) return true;
  MethodTrial* const trial = find_trial(inv, cached, methods);
  if (trial == nullptr || timed_ || !trial->is_settled_on(kCopied)) return false;
  trial->advance();
  return true;
}

// The lines say where the buffers are. Whether to copy as well is settled before, by where they
// were in the last such call.
SharedExecutor::Chosen SharedExecutor::choose_by_lines(const Invocation& inv, CachedCall& cached,
                                                       const SharedMethods& methods) {
  const BufferPlacement mine = exchange_.place(inv);
  const bool expects_placed = cached.memory == kCommunicator;
  MethodTrial* const trial = find_trial(inv, cached, methods);
  const auto [method, is_timed] =
      trial != nullptr
          ? trial->turn()
          : MethodTrial::Turn{expects_placed ? methods.communicator : methods.ordinary, false};
  const bool copies = method == kCopied && copied_.fits(inv);
  const bool is_copied = copies && (expects_placed || !mine.everywhere());
  sync_.prefetch_phase();
  sync_.wait_for_line(inv);
  const int64_t entered = is_timed ? GroupSync::now_ns() : 0;
  if (is_copied) copied_.copy(inv);
  exchange_.publish(inv, mine, timed_ ? std::optional(timed_->times) : std::nullopt);
  if (is_copied) copied_.prefetch_next(inv);
  const size_t in_arena = exchange_.gather(inv, mine, cached.placements);
  const bool placed = in_arena == size_t(sync_.world_size());
  if (placed && methods.communicator == kMessages) return {.method = kMessages};
  cached.memory = placed                                        ? kCommunicator
                  : in_arena == 0 && exchange_.is_in_place(inv) ? kInPlace
                                                                : kOrdinary;
  settle_trial(inv);
  const bool as_expected = expects_placed ? placed : in_arena == 0;
  if (trial != nullptr && as_expected) {
    trial->advance();
    if (is_timed) timed_.emplace(TimedCall{*trial, method, inv.bytes(), {entered}});
  }
  Chosen chosen{.method = expects_placed && !placed ? methods.ordinary : method,
                .is_copied = is_copied,
                .all_copied = copies && (expects_placed || in_arena == 0),
                .is_timed = is_timed};
  if (chosen.all_copied) return chosen;
  if (placed) chosen.buffers = &exchange_.resolve(inv, cached.placements);
  if (in_arena == 0 && chosen.method == kCma) chosen.buffers = exchange_.find_by_cma(inv);
  return chosen;
}

// Where calls like it learn which method is the fastest; null: they have none to choose. Asked before
// the handshake, so by what all of them know.
MethodTrial* SharedExecutor::find_trial(const Invocation& inv, CachedCall& cached,
                                        const SharedMethods& methods) {
  const bool small = copied_.fits(inv);
  const bool placed = cached.memory == kCommunicator;
  const SharedMethod predicted = placed ? methods.communicator : methods.ordinary;
  if (!methods.open || predicted == kMessages || inv.is_scaled() || (placed && !small))
    return nullptr;
  MethodTrial*& trial = cached.trials[cached.memory];
  if (trial != nullptr) return trial;
  std::vector<SharedMethod> candidates = {predicted};
  const auto add = [&](SharedMethod method, bool possible) {
    if (possible && method != predicted) candidates.push_back(method);
  };
  add(kCopied, small);
  add(kPlaced, placed);
  add(kCma, !placed && methods.cma);
  add(kTiles, !placed);
  const std::array key = {int(inv.call.collective), int(cached.memory), int(small),
                          int(std::bit_width(inv.bytes()))};
  trial = &trials_.try_emplace(key, candidates, inv.bytes()).first->second;
  return trial;
}

// The handshake is done: the ranks' lines say what the call that was timed took them.
void SharedExecutor::settle_trial(const Invocation& inv) {
  if (!timed_) return;
  const CallTimes last = exchange_.times(inv, timed_->times);
  timed_->trial.note(timed_->method,
                     double(last.left_ns - last.entered_ns) / double(timed_->bytes));
  timed_.reset();
}

}  // namespace gxp
