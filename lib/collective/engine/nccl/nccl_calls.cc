#include "lib/collective/engine/nccl/nccl_calls.h"

#include "lib/collective/engine/nccl/nccl_reduction.h"
#include "lib/collective/engine/pairwise.h"

namespace gxp {
namespace {

class Starter {
 public:
  Starter(const NcclTarget& target, const Call& call, ConstMemory input, Memory output)
      : at_(target),
        call_(call),
        input_(input),
        output_(output),
        chunks_(call.count, target.world_size) {}

  void start() const {
    switch (call_.collective) {
      case Collective::kAllReduce:
      case Collective::kReduce:
      case Collective::kReduceScatter:
        return reduce();
      case Collective::kAllGather:
        return gather_all();
      case Collective::kBroadcast:
        return check(nccl().broadcast(at_.rank == call_.root ? input_.data : output_.data,
                                      output_.data, call_.count, type(), call_.root, at_.comm,
                                      at_.stream));
      case Collective::kGather:
      case Collective::kScatter:
      case Collective::kAllToAll:
        return move_pairwise();
      case Collective::kBarrier:
        GXP_ASSERT(false);
    }
  }

 private:
  [[nodiscard]] const NcclFunctions& nccl() const { return at_.library.functions(); }
  [[nodiscard]] NcclType type() const { return nccl_type(call_.dtype); }
  void check(NcclResult result) const { at_.library.check(result, "call NCCL"); }
  [[nodiscard]] bool has_equal_chunks() const { return call_.count % size_t(at_.world_size) == 0; }

  void reduce() const {
    const NcclReduction reduction(at_.library, at_.comm, call_);
    const NcclOp op = reduction.get();
    if (call_.collective == Collective::kReduceScatter) return reduce_scatter(op);
    check(call_.collective == Collective::kAllReduce
              ? nccl().all_reduce(input_.data, output_.data, call_.count, type(), op, at_.comm,
                                  at_.stream)
              : nccl().reduce(input_.data, output_.data, call_.count, type(), op, call_.root,
                              at_.comm, at_.stream));
  }

  void reduce_scatter(NcclOp op) const {
    if (has_equal_chunks())
      return check(nccl().reduce_scatter(input_.data, output_.data, chunks_[at_.rank].count, type(),
                                         op, at_.comm, at_.stream));
    for_each_chunk([&](int root, const Range& chunk) {
      return nccl().reduce(input_.data + chunk.begin * size_of(call_.dtype),
                           root == at_.rank ? output_.data : nullptr, chunk.count, type(), op, root,
                           at_.comm, at_.stream);
    });
  }

  void gather_all() const {
    if (has_equal_chunks())
      return check(nccl().all_gather(input_.data, output_.data, chunks_[at_.rank].count, type(),
                                     at_.comm, at_.stream));
    for_each_chunk([&](int root, const Range& chunk) {
      std::byte* const to = output_.data + chunk.begin * size_of(call_.dtype);
      return nccl().broadcast(root == at_.rank ? input_.data : to, to, chunk.count, type(), root,
                              at_.comm, at_.stream);
    });
  }

  template <class Start>
  void for_each_chunk(const Start& start) const {
    NcclGroup group(at_.library);
    for (int root = 0; root < at_.world_size; ++root)
      if (chunks_[root].count > 0) check(start(root, chunks_[root]));
    group.end();
  }

  void move_pairwise() const {
    const PairwiseExchange pairwise =
        pairwise_exchange(call_, at_.rank, at_.world_size, input_, output_);
    if (pairwise.own_to.bytes > 0 && pairwise.own_to.data != pairwise.own_from.data)
      at_.copy(pairwise.own_to, pairwise.own_from);
    start_nccl_messages(at_, pairwise.messages);
  }

  const NcclTarget& at_;
  const Call& call_;
  ConstMemory input_;
  Memory output_;
  Chunks chunks_;
};

}  // namespace

void start_nccl_call(const NcclTarget& target, const Call& call, ConstMemory input, Memory output) {
  Starter(target, call, input, output).start();
}

void start_nccl_messages(const NcclTarget& target, std::span<const PeerMessage> messages) {
  const NcclFunctions& nccl = target.library.functions();
  NcclGroup group(target.library);
  for (const PeerMessage& message : messages) {
    const Memory data = message.data;
    if (data.bytes == 0) continue;
    target.library.check(message.sends ? nccl.send(data.data, data.bytes, NcclType::kUint8,
                                                   message.peer, target.comm, target.stream)
                                       : nccl.recv(data.data, data.bytes, NcclType::kUint8,
                                                   message.peer, target.comm, target.stream),
                         "call NCCL");
  }
  group.end();
}

void start_nccl_barrier(const NcclTarget& target, Memory word) {
  target.library.check(
      target.library.functions().all_reduce(word.data, word.data, 1, NcclType::kUint8, NcclOp::kMax,
                                            target.comm, target.stream),
      "call NCCL");
}

}  // namespace gxp
