#include "kernels/cuda/gemm/cuda_gemm.h"

#include <algorithm>

#include "kernels/cuda/cuda_parts.h"
#include "lib/base/bytes.h"

namespace gxp {
namespace {

// Copies of operands follow cuBLASLt's workspace.
constexpr size_t kFirstCopy = kProductWorkspaceBytes;

// The largest power of two that divides the address, up to that of every buffer of a step program
// (lib/program/step_program.h): so a product has one algorithm wherever its matrices are placed,
// under each strategy, and when it is made again.
constexpr uintptr_t kMostAlignment = 64;
uint32_t alignment_of(const void* at) {
  const auto address = reinterpret_cast<uintptr_t>(at);
  return uint32_t(address == 0 ? kMostAlignment : std::min(kMostAlignment, address & -address));
}

template <class AnyTensor>
bool is_there(const AnyTensor& tensor) {
  return tensor.memory.data != nullptr;
}

// cuBLASLt reads and stores a GELU's argument as rows of halves, each a multiple of 8.
constexpr uint32_t kArgumentAlignment = 16;
bool is_argument_of_cublas(const Tensor& x, size_t columns) {
  return x.dtype != DType::kF32 && columns % 8 == 0 &&
         alignment_of(x.memory.data) >= kArgumentAlignment;
}

Tensor like(const Tensor& tensor, void* place) {
  return {{static_cast<std::byte*>(place), tensor.memory.bytes, MemorySpace::kCuda},
          tensor.dtype,
          tensor.shape};
}

// dweight = in' dout [+ dweight], with the sums of dout's columns.
Product product_of_sums(const LinearBackward& layer, const ProductPointers& pointers) {
  return {.m = layer.in.shape.columns(),
          .n = layer.dout.shape.columns(),
          .k = layer.dout.shape.rows(),
          .transpose_a = true,
          .transpose_b = false,
          .adds = layer.accumulate,
          .end = ProductEnd::kBiasGradient,
          .operands = layer.dout.dtype,
          .out = layer.dweight.dtype,
          .alignments = {alignment_of(pointers.a), alignment_of(pointers.b),
                         alignment_of(pointers.out), alignment_of(pointers.argument)}};
}

}  // namespace

// The tensor, or its copy of another type in scratch memory, which has room for it after
// `scratch_used`.
ConstTensor CudaGemm::converted(const ConstTensor& tensor, DType type, size_t& scratch_used) {
  const size_t bytes = converted_bytes(tensor, type);
  if (bytes == 0) return tensor;
  const Memory copy = {queue_.scratch(scratch_used + bytes) + scratch_used,
                       tensor.count() * size_of(type), MemorySpace::kCuda};
  convert({copy, type, tensor.shape}, tensor);
  scratch_used += bytes;
  return {copy, type, tensor.shape};
}

void CudaGemm::matmul(Tensor out, ConstTensor a, ConstTensor b, const MatmulOptions& options) {
  if (options.float8 != Float8Operands{}) return multiply_float8(out, a, b, options);
  const bool has_residual = is_there(options.residual);
  Product product{.m = out.shape.rows(),
                  .n = out.shape.columns(),
                  .k = options.transpose_a ? a.shape.rows() : a.shape.columns(),
                  .transpose_a = options.transpose_a,
                  .transpose_b = options.transpose_b,
                  .adds = options.accumulate || has_residual,
                  .end = is_there(options.bias) ? ProductEnd::kBias : ProductEnd::kPlain,
                  .operands = type_of_product(a, b),
                  .out = out.dtype,
                  .alignments = {}};
  GXP_ASSERT(a.count() == product.m * product.k && b.count() == product.k * product.n);
  GXP_ASSERT(!options.accumulate || !has_residual);
  if (out.count() == 0) return;
  queue_.scratch(scratch_of_matmul(out, a, b, options));
  size_t used = kFirstCopy;
  const ConstTensor left = converted(a, product.operands, used);
  const ConstTensor right = converted(b, product.operands, used);
  const ConstTensor bias = converted(options.bias, out.dtype, used);
  const ProductPointers pointers = {
      array_of(left).data,
      array_of(right).data,
      array_of(has_residual ? options.residual : ConstTensor(out)).data,
      array_of(bias).data,
      nullptr,
      array_of(out).data,
      queue_.scratch(kFirstCopy)};
  product.alignments = {alignment_of(pointers.a), alignment_of(pointers.b),
                        std::min(alignment_of(pointers.c), alignment_of(pointers.out)),
                        alignment_of(pointers.bias)};
  multiply(product, pointers, bias.dtype);
}

void CudaGemm::multiply(const Product& product, const ProductPointers& pointers, DType bias_type) {
  if (product.end != ProductEnd::kBias || products_.knows(product, pointers))
    return products_.multiply(product, pointers);
  Product plain = product;
  plain.end = ProductEnd::kPlain;
  plain.alignments.back() = alignment_of(nullptr);
  products_.multiply(plain, pointers);
  add_row(queue_, {pointers.out, product.out}, {pointers.bias, bias_type}, product.m, product.n);
}

// x by one product, its GELU by a kernel if it is wanted.
void CudaGemm::gelu_apart(const LinearGelu& layer) {
  matmul(layer.x, layer.in, layer.weight,
         {.bias = layer.bias, .float8 = operands_of_forward(layer.float8), .b_codes = layer.codes});
  if (is_there(layer.activated))
    activation_forward(Activation::kGeluTanh, layer.activated, layer.x);
}

void CudaGemm::linear_gelu(const LinearGelu& layer) {
  const Tensor& x = layer.x;
  if (layer.float8 || !is_argument_of_cublas(x, x.shape.columns()) || layer.in.dtype != x.dtype ||
      layer.weight.dtype != x.dtype || layer.bias.dtype != x.dtype)
    return gelu_apart(layer);
  // One product, whether its GELU is wanted or not: another one's x might have other bits.
  std::byte* const scratch = queue_.scratch(scratch_of(layer));
  void* const out =
      is_there(layer.activated) ? array_of(layer.activated).data : scratch + kFirstCopy;
  const ProductPointers pointers = {array_of(layer.in).data,
                                    array_of(layer.weight).data,
                                    out,
                                    array_of(layer.bias).data,
                                    array_of(x).data,
                                    out,
                                    scratch};
  GXP_ASSERT(alignment_of(pointers.out) >= kArgumentAlignment);
  const Product product{.m = x.shape.rows(),
                        .n = x.shape.columns(),
                        .k = layer.in.shape.columns(),
                        .transpose_a = false,
                        .transpose_b = false,
                        .adds = false,
                        .end = ProductEnd::kBiasGelu,
                        .operands = x.dtype,
                        .out = x.dtype,
                        .alignments = {alignment_of(pointers.a), alignment_of(pointers.b),
                                       kArgumentAlignment, alignment_of(x.memory.data)}};
  // Timed as if the GELU were wanted: the choice is one for both.
  LinearGelu wanted = layer;
  wanted.activated = like(x, out);
  const FusionTrial trial{.fused = [&](void*) { products_.multiply(product, pointers); },
                          .apart = [&](void*) { gelu_apart(wanted); }};
  if (products_.fuses(product, pointers, trial)) return products_.multiply(product, pointers);
  gelu_apart(layer);
}

void CudaGemm::linear_backward(const LinearBackward& layer) {
  GXP_ASSERT(!layer.of_gelu || !layer.add_dx);
  layer.start(LinearPart::kInput);
  if (!layer.float8) return differentiate(layer);
  differentiate_float8(layer);
  differentiate_bias(layer);
}

void CudaGemm::differentiate_bias(const LinearBackward& layer) {
  if (!is_there(layer.dbias)) return;
  if (!layer.accumulate) fill(layer.dbias, 0.0f);
  bias_backward(layer.dbias, layer.dout);
}

void CudaGemm::differentiate(const LinearBackward& layer) {
  GXP_ASSERT(layer.in.dtype == layer.weight.dtype);  // else its copy would replace that of dout
  size_t used = kFirstCopy;
  queue_.scratch(scratch_of(layer));
  const ConstTensor dout = converted(layer.dout, layer.weight.dtype, used);
  if (layer.of_gelu)
    differentiate_gelu(layer, dout);
  else
    matmul(layer.dx, dout, layer.weight,
           {.transpose_b = !layer.outputs_first, .accumulate = layer.add_dx});
  layer.start(LinearPart::kParameters);
  if (may_sum_bias(layer))
    differentiate_weight_and_bias(layer);
  else
    differentiate_apart(layer, dout);
}

void CudaGemm::differentiate_apart(const LinearBackward& layer, const ConstTensor& dout) {
  const ConstTensor in = layer.input();
  if (is_there(layer.dweight))
    matmul(layer.dweight, layer.outputs_first ? dout : in, layer.outputs_first ? in : dout,
           {.transpose_a = true, .accumulate = layer.accumulate});
  differentiate_bias(layer);
}

// Trials leave the gradients as they are: theirs are in memory of their own.
void CudaGemm::differentiate_weight_and_bias(const LinearBackward& layer) {
  const size_t weight_bytes = round_up(layer.dweight.memory.bytes, kProductCopyAlignment);
  const auto into = [&](void* memory) {
    LinearBackward trial = layer;
    trial.dweight = like(layer.dweight, memory);
    trial.dbias = like(layer.dbias, static_cast<std::byte*>(memory) + weight_bytes);
    return trial;
  };
  const auto fused = [&](const LinearBackward& call) {
    const ProductPointers pointers = pointers_of_sums(call);
    products_.multiply(product_of_sums(call, pointers), pointers);
    if (!call.accumulate) return;
    const size_t columns = call.dbias.count();
    add_columns(queue_, 1, columns, columns, cuda_vector<float>(call.dbias, columns),
                static_cast<const float*>(pointers.argument));
  };
  const auto apart = [&](const LinearBackward& call) { differentiate_apart(call, call.dout); };
  const FusionTrial trial{.bytes = weight_bytes + layer.dbias.memory.bytes,
                          .fused = [&](void* memory) { fused(into(memory)); },
                          .apart = [&](void* memory) { apart(into(memory)); }};
  const ProductPointers pointers = pointers_of_sums(layer);
  if (products_.fuses(product_of_sums(layer, pointers), pointers, trial)) return fused(layer);
  apart(layer);
}

// Of dweight's product, which sums the columns of dout, its second operand, on its way. It stores
// the sums: those that are to be added go through scratch memory.
ProductPointers CudaGemm::pointers_of_sums(const LinearBackward& layer) {
  std::byte* const scratch = queue_.scratch(scratch_of(layer));
  void* const dweight = array_of(layer.dweight).data;
  return {array_of(layer.input()).data,
          array_of(layer.dout).data,
          dweight,
          nullptr,
          layer.accumulate ? scratch + kFirstCopy : array_of(layer.dbias).data,
          dweight,
          scratch};
}

// dx = dout weight' * gelu'(in), and in becomes gelu(in) unless that is kept.
void CudaGemm::differentiate_gelu(const LinearBackward& layer, const ConstTensor& dout) {
  const Tensor& dx = layer.dx;
  const Tensor& in = layer.in;
  const ProductPointers pointers = {
      array_of(dout).data, array_of(layer.weight).data, array_of(dx).data,         nullptr,
      array_of(in).data,   array_of(dx).data,           queue_.scratch(kFirstCopy)};
  const Product product{
      .m = dx.shape.rows(),
      .n = dx.shape.columns(),
      .k = dout.shape.columns(),
      .transpose_a = false,
      .transpose_b = !layer.outputs_first,
      .adds = false,
      .end = ProductEnd::kGeluSlope,
      .operands = layer.weight.dtype,
      .out = dx.dtype,
      .alignments = {alignment_of(pointers.a), alignment_of(pointers.b), alignment_of(pointers.out),
                     alignment_of(pointers.argument)}};
  // With gelu(in) into `value` if that is not null. A trial leaves `in` as it is, and is made as if
  // the value were wanted: the choice is one for both.
  const auto fused = [&](void* value) {
    products_.multiply(product, pointers);
    if (value == nullptr) return;
    layer.start(LinearPart::kActivation);
    activation_forward(Activation::kGeluTanh, like(in, value), in);
  };
  const auto apart = [&](void* value) {
    matmul(dx, dout, layer.weight, {.transpose_b = !layer.outputs_first});
    slope_of_gelu(layer, value);
  };
  void* const value = is_there(layer.activated) ? nullptr : in.memory.data;
  const bool can_be =
      is_argument_of_cublas(in, product.n) && in.dtype == dx.dtype && dx.dtype == dout.dtype;
  if (can_be && products_.fuses(product, pointers,
                                {.bytes = in.memory.bytes, .fused = fused, .apart = apart}))
    return fused(value);
  apart(value);
}

// dx *= gelu'(in), and `value`, which may be that of in or null, becomes gelu(in).
void CudaGemm::slope_of_gelu(const LinearBackward& layer, void* value) {
  layer.start(LinearPart::kActivation);
  const Tensor activated =
      value == nullptr ? Tensor() : like(layer.in, value).with_largest(layer.in.largest);
  activation_backward(Activation::kGeluTanh, layer.dx, activated, layer.dx, layer.in);
}

void CudaGemm::multiply_float8(const Tensor& out, const ConstTensor& a, const ConstTensor& b,
                               const MatmulOptions& options) {
  const Float8Layouts a_layouts{.as_stored = !options.transpose_a,
                                .transposed = options.transpose_a};
  const Float8Layouts b_layouts{.as_stored = options.transpose_b,
                                .transposed = !options.transpose_b};
  std::byte* at = queue_.scratch(scratch_of_matmul(out, a, b, options)) + kFirstCopy;
  const Float8Matrix left = make_float8(queue_, at, a, options.float8.a, a_layouts);
  GXP_ASSERT(options.b_codes.memory.memory.data == nullptr || options.float8.b == Float8::kE4M3);
  const Float8Matrix right = options.float8.b == Float8::kE4M3
                                 ? weight_codes(queue_, at, b, b_layouts, options.b_codes)
                                 : make_float8(queue_, at, b, options.float8.b, b_layouts);
  const size_t k = options.transpose_a ? a.shape.rows() : a.shape.columns();
  GXP_ASSERT(a.count() == out.shape.rows() * k && b.count() == k * out.shape.columns());
  const bool is_padded = options.transpose_a && !options.transpose_b;  // both are turned
  multiply_codes(out, left, right, is_padded ? float8_rows(k) : k, options);
}

// Multiplies the codes a(m, k) and b(n, k): the one form that cuBLASLt has for them on Ada and
// Hopper.
void CudaGemm::multiply_codes(const Tensor& out, const Float8Matrix& a, const Float8Matrix& b,
                              size_t k, const MatmulOptions& options) {
  const bool has_residual = is_there(options.residual);
  const bool has_bias = is_there(options.bias);
  GXP_ASSERT(k % 16 == 0 && out.shape.columns() % 16 == 0);
  GXP_ASSERT(!has_bias || options.bias.dtype == DType::kBF16);
  GXP_ASSERT(!options.accumulate || !has_residual);
  const bool turns_a = options.transpose_a;
  const ProductPointers pointers{
      .a = turns_a ? a.transposed : a.as_stored,
      .b = options.transpose_b ? b.as_stored : b.transposed,
      .c = array_of(has_residual ? options.residual : ConstTensor(out)).data,
      .bias = array_of(options.bias).data,
      .argument = nullptr,
      .out = array_of(out).data,
      .workspace = queue_.scratch(kFirstCopy),
      .a_factor = a.factor,
      .b_factor = b.factor};
  multiply({.m = out.shape.rows(),
            .n = out.shape.columns(),
            .k = k,
            .transpose_a = false,
            .transpose_b = true,
            .adds = options.accumulate || has_residual,
            .end = has_bias ? ProductEnd::kBias : ProductEnd::kPlain,
            .operands = DType::kU8,
            .out = out.dtype,
            .alignments = {uint32_t(kMostAlignment), uint32_t(kMostAlignment),
                           std::min(alignment_of(pointers.c), alignment_of(pointers.out)),
                           alignment_of(pointers.bias)},
            .float8 = {a.type, b.type},
            .fast_sums =
                float8_fast_sums_ && Float8Operands{a.type, b.type} == operands_of_forward(true)},
           pointers, DType::kBF16);
}

void CudaGemm::differentiate_float8(const LinearBackward& layer) {
  const bool trains = is_there(layer.dweight);
  const bool turned = layer.outputs_first;  // the weight is (M, K)
  const Float8Layouts dout_layouts{.as_stored = true, .transposed = trains};
  const Float8Layouts weight_layouts{.as_stored = !turned, .transposed = turned};
  const Float8Layouts in_layouts{.as_stored = false, .transposed = true};
  std::byte* at = queue_.scratch(scratch_of(layer)) + kFirstCopy;
  const Float8Matrix dout = make_float8(queue_, at, layer.dout, Float8::kE5M2, dout_layouts);
  std::byte* place = at;
  const Float8Matrix weight =
      weight_codes(queue_, place, layer.weight, weight_layouts, layer.codes);
  multiply_codes(layer.dx, dout, weight, layer.dout.shape.columns(),
                 {.transpose_b = !turned, .accumulate = layer.add_dx});
  if (layer.of_gelu)
    slope_of_gelu(layer, is_there(layer.activated) ? nullptr : layer.in.memory.data);
  layer.start(LinearPart::kParameters);
  if (!trains) return;
  place = at;  // the weight's product is queued before
  const Float8Matrix in = make_float8(queue_, place, layer.input(), Float8::kE4M3, in_layouts);
  multiply_codes(layer.dweight, turned ? dout : in, turned ? in : dout,
                 float8_rows(layer.dout.shape.rows()),
                 {.transpose_a = true, .accumulate = layer.accumulate});
}

}  // namespace gxp
