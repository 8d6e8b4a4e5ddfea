// A training step as data: operations on lanes, the memory that each touches, and what must come
// before what. Built once, before the first step, by build.h; then interpreted: `train` executes
// it, and tools that predict replay it. Pure: it names memory by buffer and offset and owns none.
//
//   Lanes     operations of one lane run in the program's order, one at a time.
//   Order     `after` holds what the lanes' own order does not give: operations of other lanes that
//   must
//             be done first. It is derived from the memory that operations touch (derive_order), so
//             no builder can forget an edge.
//   Memory    persistent buffers live from the first step to the last. All others live from the
//   first to
//             the last operation that touches them, and share one arena: buffers whose lives
//             overlap do not overlap in the arena (place_buffers).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "lib/arch/recompute.h"
#include "lib/base/dtype.h"
#include "lib/base/memory_kind.h"
#include "lib/base/range.h"
#include "lib/shard/rank_groups.h"

namespace gxp {

using OpId = int;
using BufferId = int;
inline constexpr BufferId kNoBuffer = -1;

// kOffload: copies between the device and what is kept beside it.
enum class Lane { kCompute, kComm, kOffload };
inline constexpr int kLaneCount = 3;

// Where a buffer's bytes are: those of kHost and kFile are offloaded.
enum class Storage { kDevice, kHost, kFile };
inline constexpr int kStorageCount = 3;

enum class OpKind {
  kNextBatch,         // tokens, targets <- the data loader
  kForward,           // output <- input, saved, through `unit`
  kLoss,              // the head's forward and backward: losses, gradient stream, its gradients
  kEvaluateLoss,      // the head's forward: losses only
  kLogits,            // the head's forward: output <- logits of the last position of each row
  kRecompute,         // what the forward of `unit` has not kept of `saved`, for its backward
  kBackward,          // gradient stream <- gradient stream, through `unit`; its gradients are added
  kRoundParameters,   // a wrap's parameters, or this rank's part, from the master weights
  kGatherParameters,  // a wrap's parameters from the shards of `group`
  kReduceGradients,  // sum of gradients: of a bucket over all ranks; of a wrap over `group`, to its
                     // shards, or over the replicas of a shard
  kAddGradients,  // `gradients`, of whatever type <- a wrap's gradients of a micro-batch, `added`,
                  // and those of earlier ones, `earlier`, if any
  kReduceLoss,    // sum of the step's loss over the ranks
  kMeasureGradients,  // sums of squares, one for each rank's shard of the gradients
  kGatherNorm,        // those of the other ranks
  kClipGradients,     // the global norm, the clipping coefficient, the check that all is finite
  kUpdate,            // the optimizer, on `elements` of all tensors that it does not see whole
  kPrepareUpdate,     // this rank's part of the directions of a wrap's tensors that it sees whole
  kGatherDirections,  // the other parts, of `group`
  kUpdateWhole,       // the optimizer, on those tensors
  kFetch,             // `moves`, to the device
  kStore,             // `moves`, from it
};
std::string_view to_string(OpKind kind);
std::string_view to_string(Lane lane);

// Offsets and lengths of what is offloaded are multiples of this: the block of direct file I/O.
inline constexpr size_t kOffloadAlignment = 4096;

struct BufferSpec {
  std::string name;
  MemoryKind kind = MemoryKind::kActivations;
  size_t bytes = 0;
  DType dtype = DType::kF32;  // of its elements
  bool persistent = false;
  Storage storage = Storage::kDevice;  // only persistent buffers are offloaded
  // Of a persistent buffer of which a part is offloaded: the buffer that has the elements after its
  // own.
  BufferId rest = kNoBuffer;
  size_t alignment = 64;  // of its offset; a cache line, and the widest vector
  OpId first = -1;        // the operations that touch it first and last; -1 before finish
  OpId last = -1;
  // In the arena, or in what its storage keeps; 0 for persistent buffers on the device, each of
  // which is its own memory.
  size_t offset = 0;
};

// Bytes of a buffer that an operation reads or writes.
struct BufferUse {
  BufferId buffer = kNoBuffer;
  Range bytes;
  bool write = false;
};

// Where a unit's or a wrap's parameters or gradients lie: from element `begin` of a buffer on.
struct FlatView {
  BufferId buffer = kNoBuffer;
  size_t begin = 0;

  friend bool operator==(const FlatView&, const FlatView&) = default;
};

// Bytes that the offload lane copies between an offloaded buffer and one of the device.
struct Move {
  BufferId offloaded = kNoBuffer;
  size_t from = 0;  // in the offloaded buffer
  BufferId buffer = kNoBuffer;
  size_t bytes = 0;  // from the buffer's first on
};

// The buffers in which a part of what is offloaded is updated.
struct Tile {
  int number = -1;
  std::vector<BufferId> states;     // in the order of OptimizerSpec::kept
  BufferId weights = kNoBuffer;     // none: the weights are not offloaded
  BufferId parameters = kNoBuffer;  // rounded ones, likewise
};

struct Op {
  OpKind kind = OpKind::kForward;
  Lane lane = Lane::kCompute;
  int unit = -1;    // of forward, loss, recompute, backward
  int wrap = -1;    // of what gathers, reduces, adds, rounds and updates parameters or gradients
  int micro = -1;   // micro-batch within the step
  int bucket = -1;  // of reduce-gradients, unless it has a wrap
  // Of the comm lane: who takes part, in a collective over `count` elements (of all members).
  RankGroup group = RankGroup::kWorld;
  size_t count = 0;
  DType dtype = DType::kF32;  // of these elements
  bool scatter = false;       // of reduce-gradients: each member keeps its part of the sum only
  // Of gather-parameters: what it gathers into lasts, and is out of date since the last update.
  bool publishes = false;
  // Of reduce-gradients: the sum is complete and goes to the gradients that last.
  bool keeps = false;
  // Of loss, backward and reduce-gradients: gradients are added to those of an earlier micro-batch.
  bool accumulate = false;
  FlatView shard;       // of gather-parameters from shards: this rank's
  FlatView parameters;  // of the unit or wrap, and of the one that a tied head borrows from
  FlatView gradients;
  FlatView borrowed_parameters;
  FlatView borrowed_gradients;
  FlatView added;  // of add-gradients
  FlatView earlier;
  BufferId tokens = kNoBuffer;
  BufferId targets = kNoBuffer;
  BufferId losses = kNoBuffer;
  BufferId input = kNoBuffer;
  BufferId output = kNoBuffer;
  BufferId stream_gradient = kNoBuffer;  // of the residual stream; read and overwritten by backward
  std::vector<BufferId> saved;           // in the order of UnitSpec::saved
  Recompute recompute = Recompute::kNone;  // of recompute: what it makes again of `saved`
  // In the order of the unit's scratch list for this kind; of the updates of whole tensors: the
  // wrap's directions, and the optimizer's workspace.
  std::vector<BufferId> scratch;
  // Of update: of this rank's shard of each unit, in forward order, as the optimizer's flat buffers
  // hold them. In a tile, where that part is offloaded.
  Range elements;
  Tile tile;
  std::vector<Move> moves;  // of fetch and store
  std::vector<BufferUse> uses;
  std::vector<OpId> after;
};

struct StepProgram {
  std::vector<Op> ops;
  std::vector<BufferSpec> buffers;
  size_t arena_bytes = 0;
  // What the arena holds at its fullest operation, by MemoryKind; gaps count as workspace. Its sum
  // is arena_bytes.
  std::array<uint64_t, kMemoryKindCount> arena_by_kind{};
  std::array<uint64_t, kStorageCount> offloaded_bytes{};  // by Storage; none of kDevice
  // The persistent buffers; kNoBuffer in a program without them. Parameters, gradients, master
  // weights and moments are whole or this rank's shard; loss_sum has the two f64 that kReduceLoss
  // sums: the loss and the wish to stop; norm_parts one f64 for each part of the norm, those that
  // rank 0 sums up first.
  BufferId parameters = kNoBuffer;
  BufferId master_weights = kNoBuffer;  // only where parameters are of a half type
  BufferId gradients = kNoBuffer;
  std::vector<BufferId> optimizer_states;  // in the order of OptimizerSpec::kept
  BufferId loss_sum = kNoBuffer;
  BufferId norm_parts = kNoBuffer;
  RankGroups groups;
  // What the optimizer changes.
  [[nodiscard]] BufferId weights() const {
    return master_weights == kNoBuffer ? parameters : master_weights;
  }
  [[nodiscard]] int weight_shards() const {
    return master_weights == kNoBuffer ? parameter_shards : optimizer_shards;
  }
  // What a rank holds of it: one of so many equal parts of each wrap; 1: all, else shard_size or
  // world_size.
  int optimizer_shards = 1;
  int gradient_shards = 1;   // of the buffer that lasts
  int parameter_shards = 1;  // likewise
};

// "reduce-gradients bucket 2", "forward h.3 (micro-batch 0)": for traces, errors and race reports.
std::string describe(const Op& op);

// Sets first and last of every buffer that is not persistent, then its place in the arena by
// interval colouring: largest first, each at the lowest offset that is free during its life. Cost:
// O(buffers^2).
void place_buffers(StepProgram& program);

// Fills every op's `after`: for each pair of operations on different lanes that touch the same
// bytes (of a persistent buffer or of the arena), one of them writing, the later waits for the
// earlier, unless other edges already imply it. Needs place_buffers. Cost: O(ops^2 * uses^2), once
// per run.
void derive_order(StepProgram& program);

}  // namespace gxp
