// Runs a call in memory that the ranks of a group see of each other (transport/arena), without
// messages: the algorithm `direct`. The bits are those of reduction_tree.h (fold_all).
//
// Every call publishes one line a rank (group_sync.h), by which all ranks decide alike which method
// the call takes: the one that was predicted (shared_methods.h) or that calls like it have shown to
// be the fastest (method_trial.h), as far as the memory allows it.
//   copied  copied_method.h: small inputs; one synchronisation
//   placed  direct_method.h: all buffers are communicator memory
//   cma     direct_method.h: none is, but the OS lets each rank reach the others' memory
//   tiles   tiled_method.h: any memory
// Cost for p ranks and K bytes of an all-reduce, bytes read and written by each rank: placed 2K;
// cma 2K, and as much in the caches; tiles (4 - 2/p)K or so, half of it in the caches.
//   Errors   kPeer: a peer is lost, late, or has made another call; both calls are named.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "lib/base/deadline.h"
#include "lib/collective/engine/shared_memory/buffer_exchange.h"
#include "lib/collective/engine/shared_memory/copied_method.h"
#include "lib/collective/engine/shared_memory/direct_method.h"
#include "lib/collective/engine/shared_memory/group_sync.h"
#include "lib/collective/engine/shared_memory/part_mover.h"
#include "lib/collective/engine/shared_memory/shared_call.h"
#include "lib/collective/engine/shared_memory/tiled_method.h"
#include "lib/collective/tune/method_trial.h"
#include "lib/collective/tune/shared_methods.h"

namespace gxp {

class SharedExecutor {
 public:
  static constexpr size_t kMostTileBytes = TiledMethod::kMostTileBytes;

  // As GroupSync.
  SharedExecutor(SharedArena& arena, FlightRecorder& recorder, std::vector<int> members, int rank,
                 int group);
  SharedExecutor(const SharedExecutor&) = delete;
  SharedExecutor& operator=(const SharedExecutor&) = delete;
  void report_to(FlightRecorder& recorder) { sync_.report_to(recorder); }
  // Calls on a device's memory synchronise by it, too.
  [[nodiscard]] GroupSync& sync() { return sync_; }
  void use_tiles_of(size_t bytes) { tiled_.use_tiles_of(bytes); }

  // Memory as extents_of() says, on the host. Returns false without side effects if messages are
  // the method for such memory; finding out costs one synchronisation, unless they are for any, since
  // a rank learns where its peers' buffers lie only when all have published them.
  bool execute(const Call& call, ConstMemory input, Memory output, Deadline deadline,
               const SharedMethods& methods);

 private:
  // The kind of memory of a call's buffers; whether they are in place follows rank 0.
  enum CallMemory : uint8_t { kOrdinary, kInPlace, kCommunicator };
  // A call that was made before, and what was learnt about it.
  struct CachedCall {
    SharedCall shape;
    KnownPlacements placements;
    CallMemory memory = kOrdinary;         // the last time
    std::array<MethodTrial*, 3> trials{};  // by CallMemory
  };
  // The method of a call, on which all ranks agree.
  struct Chosen {
    SharedMethod method;
    bool needs_lines = true;               // false: kCopied, wherever the ranks' buffers are
    const RankBuffers* buffers = nullptr;  // as all ranks reach them; null: they do not
    bool is_copied = false;                // this rank's input
    bool all_copied = false;               // every rank's, and all ranks have synchronised since
    bool is_timed = false;
  };
  // The last call that was timed; the next lines tell what it took each rank.
  struct TimedCall {
    MethodTrial& trial;
    SharedMethod method;
    size_t bytes;
    CallTimes times;  // of this rank
  };

  CachedCall& find(const Call& call);
  [[nodiscard]] Invocation begin(const Call& call, const SharedCall& shape, ConstMemory input,
                                 Memory output, Deadline deadline);
  bool copies_anyway(const Invocation& inv, CachedCall& cached, const SharedMethods& methods);
  Chosen choose_by_lines(const Invocation& inv, CachedCall& cached, const SharedMethods& methods);
  MethodTrial* find_trial(const Invocation& inv, CachedCall& cached, const SharedMethods& methods);
  void settle_trial(const Invocation& inv);

  GroupSync sync_;
  PartMover mover_{sync_};
  CopiedMethod copied_{sync_, mover_};
  DirectMethod direct_{sync_, mover_};
  TiledMethod tiled_{sync_, mover_};
  BufferExchange exchange_{sync_};
  std::array<std::optional<CachedCall>, 8> cached_;
  size_t next_cached_ = 0;  // to be replaced
  // One for calls with the same collective, memory, possible methods and order of magnitude.
  std::map<std::array<int, 4>, MethodTrial> trials_;
  std::optional<TimedCall> timed_;
};

}  // namespace gxp
