// A training step as data: operations on lanes, the memory that each touches, and what must come
// before what. Built once, before the first step, by build.h; then interpreted: `train` executes
// it, and tools that predict replay it. Pure: it names memory by buffer and offset and owns none.
//
//   Lanes     operations of one lane run in the program's order, one at a time.
//   Order     `after` holds what the lanes' own order does not give: operations of other lanes
//             that must be done first. It is derived from the memory that operations touch
//             (derive_order), so no builder can forget an edge.
//   Memory    persistent buffers live from the first step to the last. All others live from the
//             first to the last operation that touches them, and share one arena: buffers whose
//             lives overlap do not overlap in the arena (place_buffers).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
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

// kOffload: copies between the device and offloaded memory.
enum class Lane { kCompute, kComm, kOffload };
inline constexpr int kLaneCount = 3;

// The location of a buffer's bytes: kHost and kFile are offloaded.
enum class Storage { kDevice, kHost, kFile };
inline constexpr int kStorageCount = 3;

// The rows of op_kinds.inc.
enum class OpKind {
#define GXP_OP(kind, ...) kind,
#include "lib/program/op_kinds.inc"
#undef GXP_OP
};
// The part that carries out an operation: of a step (Trainer::bind), or of another program.
enum class OpPart {
  kForwardBackward,
  kParameters,
  kGradients,
  kClipping,
  kWeightUpdate,
  kOffload,
  kEvaluation
};
enum class OpRanks { kAlone, kGathers, kReduces };
enum class OpSteps { kVaries, kRepeats };
struct OpRow {
  std::string_view name;  // "next-batch"
  OpPart part;
  OpRanks ranks;
  OpSteps steps;
};
const OpRow& row_of(OpKind kind);
inline std::string_view to_string(OpKind kind) { return row_of(kind).name; }
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
  // If part of this persistent buffer is offloaded: the buffer that holds the remaining elements.
  BufferId rest = kNoBuffer;
  size_t alignment = 64;  // of its offset; a cache line, and the widest vector
  OpId first = -1;        // the operations that touch it first and last; -1 before place_buffers
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

// The location of a unit's or an FSDP unit's parameters or gradients: from element `begin` of a
// buffer on.
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

// The buffers in which some elements of the offloaded optimizer state are updated.
struct Tile {
  int number = -1;
  std::vector<BufferId> states;     // in the order of OptimizerSpec::kept
  BufferId weights = kNoBuffer;     // none: the weights are not offloaded
  BufferId parameters = kNoBuffer;  // rounded; none: they are not offloaded
};

// The fields of an operation in groups of what belongs together; op_kinds.inc says which groups a
// kind has.

// Activations of a micro-batch, and scratch.
struct OpBuffers {
  BufferId tokens = kNoBuffer;
  BufferId targets = kNoBuffer;
  BufferId document_begin = kNoBuffer;  // where rows hold documents (StepShape::documents)
  BufferId losses = kNoBuffer;
  BufferId input = kNoBuffer;
  BufferId output = kNoBuffer;
  BufferId stream_gradient = kNoBuffer;  // of the residual stream; read and overwritten by backward
  BufferId codes = kNoBuffer;            // of the block's matrices, in 8 bits, in their order
  BufferId largest = kNoBuffer;          // f32, of UnitSpec::operands; in 8 bits alone
  std::vector<BufferId> saved;           // in the order of UnitSpec::saved
  std::vector<BufferId> scratch;         // in the order of the unit's scratch list for this kind
  Recompute recompute = Recompute::kNone;  // of kRecompute: the recomputed part of `saved`
};

struct OpParameters {
  FlatView own;       // of the FSDP unit, or of the unit's tensors that are trained
  FlatView frozen;    // of the unit's tensors that are not
  FlatView borrowed;  // of the tensor that a tied head borrows, and what follows it
  FlatView shard;     // of kGatherParameters from shards: this rank's shard
  // kGatherParameters only: it gathers into the persistent buffer, which is out of date since the
  // last update.
  bool publishes = false;
};

struct OpGradients {
  FlatView own;       // of the unit or FSDP unit, or the message of the FSDP unit or bucket
  FlatView borrowed;  // of the tensor that a tied head borrows, and what follows it
  FlatView added;     // of kAddGradients: own = earlier + added
  FlatView earlier;   // of kAddGradients; none: own = added
  // The gradients are added to those of an earlier micro-batch.
  bool accumulate = false;
  // kReduceGradients only: this rank's residual of a sum in a codec.
  FlatView residual;
  // kReduceGradients only: the sum is complete and goes to the persistent buffer.
  bool keeps = false;
};

// The collectives of the comm lane.
struct OpCollective {
  RankGroup group = RankGroup::kWorld;
  size_t count = 0;  // elements of all members together
  DType dtype = DType::kF32;
  bool scatter = false;  // of kReduceGradients: each member keeps its part of the sum only
  // Of kReduceGradients and kGatherParameters: the codec in which parts travel between hosts; "":
  // none.
  std::string codec = {};
};

struct OpUpdate {
  // kUpdate only: elements of the optimizer's flat buffers, which hold this rank's shard of each
  // trained FSDP unit in forward order; in a tile, where they are offloaded.
  Range elements;
  Tile tile;
  // Only for tensors that the optimizer sees whole.
  BufferId directions = kNoBuffer;  // the FSDP unit's
  BufferId workspace = kNoBuffer;   // the optimizer's
};

struct Op {
  OpKind kind = OpKind::kForward;
  Lane lane = Lane::kCompute;
  int unit = -1;
  int wrap = -1;
  int bucket = -1;
  int micro = -1;  // micro-batch within the step; -1: of the step
  OpBuffers buffers;
  OpParameters parameters;
  OpGradients gradients;
  OpCollective collective;
  OpUpdate update;
  std::vector<Move> moves;
  std::vector<BufferUse> uses;  // all memory that it touches
  std::vector<OpId> after;      // operations of other lanes that come first
};

struct StepProgram {
  std::vector<Op> ops;
  std::vector<BufferSpec> buffers;
  size_t arena_bytes = 0;
  // The arena's content at its peak, by MemoryKind; gaps count as workspace. Its sum
  // is arena_bytes.
  std::array<uint64_t, kMemoryKindCount> arena_by_kind{};
  std::array<uint64_t, kStorageCount> offloaded_bytes{};  // by Storage; none of kDevice
  // The persistent buffers; kNoBuffer in a program without them. Parameters, gradients, master
  // weights and optimizer state are whole or this rank's shard. loss_sum has the two f64 that
  // kReduceLoss sums: the loss and the request to stop. norm_parts has one f64 for each part of the
  // norm, in the order of the ranks that compute them.
  BufferId parameters = kNoBuffer;
  BufferId master_weights = kNoBuffer;  // of trained ones; only where they are of a half type
  BufferId gradients = kNoBuffer;
  std::vector<BufferId> optimizer_states;  // in the order of OptimizerSpec::kept
  BufferId loss_sum = kNoBuffer;
  BufferId norm_parts = kNoBuffer;
  // f32: what the codec of sums between hosts has not sent yet (compressed_sum.h), as each compressed
  // operation's OpGradients::residual says.
  BufferId residuals = kNoBuffer;
  RankGroups groups;
  // The buffer that the optimizer changes, and its shards.
  [[nodiscard]] BufferId weights() const {
    return master_weights == kNoBuffer ? parameters : master_weights;
  }
  // The groups, in order, in which ranks gather the parameters that they hold and do not update.
  [[nodiscard]] std::vector<RankGroup> publishing_groups() const;
  // A rank holds one of so many equal parts of each FSDP unit in the persistent buffers; 1: all of
  // it, else shard_size or world_size.
  int optimizer_shards = 1;
  int gradient_shards = 1;
  int parameter_shards = 1;
};

// "reduce-gradients bucket 2", "forward h.3 (micro-batch 0)": for traces, errors and race reports.
std::string describe(const Op& op);

// Sets first and last of every buffer that is not persistent, then its place in the arena by
// interval colouring: largest first, each at the lowest offset that is free during its life. Cost:
// O(buffers^2).
void place_buffers(StepProgram& program);

// Fills every op's `after`: for each pair of operations on different lanes that touch the same
// bytes (of a persistent buffer or of the arena), one of them writing, the later waits for the
// earlier, unless other edges already imply it. Needs place_buffers. Cost: O(ops * n * uses^2),
// once per run.
void derive_order(StepProgram& program);

}  // namespace gxp
