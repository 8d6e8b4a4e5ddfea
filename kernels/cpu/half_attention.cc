#include "kernels/cpu/half_attention.h"

namespace gxp {
namespace {

// The part of a batch that belongs to one head of keys and values.
struct Group {
  Group(const AttentionShape& shape, size_t group)
      : members(shape.heads / shape.kv_heads),
        own{shape.positions, members, 1, shape.head_size},
        first_row(group / shape.kv_heads * shape.positions),
        kv_column(group % shape.kv_heads * shape.head_size),
        column(kv_column * members),
        first_statistic(group * members * shape.positions) {}
  [[nodiscard]] size_t width() const { return members * own.head_size; }
  [[nodiscard]] size_t area() const { return own.positions * width(); }
  [[nodiscard]] size_t kv_area() const { return own.positions * own.head_size; }
  size_t members;
  AttentionShape own;  // of the part, seen as a batch of its own
  size_t first_row, kv_column, column;
  size_t first_statistic;  // of lse and delta
};

size_t rounded(size_t floats) { return (floats + 15) / 16 * 16; }

// Converts a group's slices, and hands out scratch for them.
class Slices {
 public:
  Slices(const ConvertKernels& convert, DType dtype, const Group& group, float* scratch)
      : convert_(convert), dtype_(dtype), group_(group), next_(scratch) {}

  float* take(size_t count) {
    float* const taken = next_;
    next_ += rounded(count);
    return taken;
  }
  float* queries(const uint16_t* from, size_t stride) {
    return widen(from + group_.first_row * stride + group_.column, stride, group_.width());
  }
  float* keys(const uint16_t* from, size_t stride) {
    return widen(from + group_.first_row * stride + group_.kv_column, stride, size());
  }
  void put_queries(uint16_t* to, size_t stride, const float* floats) const {
    narrow(to + group_.first_row * stride + group_.column, stride, floats, group_.width());
  }
  void put_keys(uint16_t* to, size_t stride, const float* floats) const {
    narrow(to + group_.first_row * stride + group_.kv_column, stride, floats, size());
  }

 private:
  [[nodiscard]] size_t size() const { return group_.own.head_size; }
  float* widen(const uint16_t* from, size_t stride, size_t columns) {
    float* const to = take(group_.own.positions * columns);
    convert_.widen(to, from, {dtype_, group_.own.positions, columns, stride, columns});
    return to;
  }
  void narrow(uint16_t* to, size_t stride, const float* floats, size_t columns) const {
    convert_.narrow(to, floats, {dtype_, group_.own.positions, columns, stride, columns});
  }

  const ConvertKernels& convert_;
  DType dtype_;
  const Group& group_;
  float* next_;
};

AttentionRows<const float> widen_rows(Slices& slices, const AttentionRows<const uint16_t>& in,
                                      const Group& group) {
  return {slices.queries(in.queries, in.query_stride), slices.keys(in.keys, in.kv_stride),
          slices.keys(in.values, in.kv_stride), group.width(), group.own.head_size};
}

}  // namespace

size_t HalfAttention::scratch_floats(const AttentionShape& shape) {
  const Group group(shape, 0);
  return 4 * rounded(group.area()) + 4 * rounded(group.kv_area()) +
         attention_scratch_floats(group.own);
}

void HalfAttention::forward(const HalfAttentionForward& args, size_t group_index,
                            float* scratch) const {
  const Group group(args.shape, group_index);
  Slices slices(convert_, args.dtype, group, scratch);
  const AttentionForward own = {.shape = group.own,
                                .in = widen_rows(slices, args.in, group),
                                .out = slices.take(group.area()),
                                .lse = args.lse + group.first_statistic};
  float* const rest = slices.take(0);
  for (size_t member = 0; member < group.members; ++member) kernels_.forward(own, member, rest);
  slices.put_queries(args.out, args.shape.heads * args.shape.head_size, own.out);
}

void HalfAttention::backward(const HalfAttentionBackward& args, size_t group_index,
                             float* scratch) const {
  const Group group(args.shape, group_index);
  Slices slices(convert_, args.dtype, group, scratch);
  const size_t channels = args.shape.heads * args.shape.head_size;
  const auto& to = args.gradients;
  const AttentionRows<float> gradients = {slices.take(group.area()), slices.take(group.kv_area()),
                                          slices.take(group.kv_area()), group.width(),
                                          group.own.head_size};
  const AttentionBackward own = {.shape = group.own,
                                 .in = widen_rows(slices, args.in, group),
                                 .out = slices.queries(args.out, channels),
                                 .lse = args.lse + group.first_statistic,
                                 .dout = slices.queries(args.dout, channels),
                                 .gradients = gradients,
                                 .delta = args.delta + group.first_statistic};
  kernels_.backward(own, 0, slices.take(0));
  slices.put_queries(to.queries, to.query_stride, gradients.queries);
  slices.put_keys(to.keys, to.kv_stride, gradients.keys);
  slices.put_keys(to.values, to.kv_stride, gradients.values);
}

}  // namespace gxp
