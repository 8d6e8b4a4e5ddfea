#include "lib/ckpt/torch/torch_tensors.h"

#include <algorithm>
#include <array>

#include "lib/ckpt/torch/strided_view.h"

namespace gxp {
namespace {

constexpr size_t kMaxTorchRank = 64;
constexpr int kMaxTorchWraps = 8;  // a parameter of a subclass of ... a tensor

struct TorchDType {
  StorageDType dtype;
  std::string_view name;
  std::string_view storage;  // class; "" if there is none
};

constexpr std::array kTorchDTypes = {
    TorchDType{StorageDType::kF64, "float64", "DoubleStorage"},
    TorchDType{StorageDType::kF32, "float32", "FloatStorage"},
    TorchDType{StorageDType::kF16, "float16", "HalfStorage"},
    TorchDType{StorageDType::kBF16, "bfloat16", "BFloat16Storage"},
    TorchDType{StorageDType::kI64, "int64", "LongStorage"},
    TorchDType{StorageDType::kI32, "int32", "IntStorage"},
    TorchDType{StorageDType::kI16, "int16", "ShortStorage"},
    TorchDType{StorageDType::kI8, "int8", "CharStorage"},
    TorchDType{StorageDType::kU8, "uint8", "ByteStorage"},
    TorchDType{StorageDType::kBool, "bool", "BoolStorage"},
    TorchDType{StorageDType::kC64, "complex64", "ComplexFloatStorage"},
    TorchDType{StorageDType::kU64, "uint64", ""},
    TorchDType{StorageDType::kU32, "uint32", ""},
    TorchDType{StorageDType::kU16, "uint16", ""},
    TorchDType{StorageDType::kF8E4M3, "float8_e4m3fn", ""},
    TorchDType{StorageDType::kF8E5M2, "float8_e5m2", ""},
    TorchDType{StorageDType::kF8E4M3Fnuz, "float8_e4m3fnuz", ""},
    TorchDType{StorageDType::kF8E5M2Fnuz, "float8_e5m2fnuz", ""},
    TorchDType{StorageDType::kF8E8M0, "float8_e8m0fnu", ""}};

const TorchDType& torch_row(StorageDType dtype) {
  return *std::ranges::find(kTorchDTypes, dtype, &TorchDType::dtype);
}

// What a tensor is rebuilt by, without the wrappers around it.
struct TorchCall {
  std::string_view function;  // in torch._utils
  PickleValue arguments;
};

constexpr std::string_view kTorchUtils = "torch._utils.";
constexpr std::array<std::string_view, 2> kParameterCalls = {
    "torch._utils._rebuild_parameter", "torch._utils._rebuild_parameter_with_state"};
constexpr std::array<std::string_view, 3> kTensorCalls = {"torch._utils._rebuild_tensor_v2",
                                                          "torch._utils._rebuild_tensor_v3",
                                                          "torch._utils._rebuild_tensor"};
constexpr std::string_view kFromType = "torch._tensor._rebuild_from_type_v2";

bool is_one_of(std::string_view global, const auto& list) {
  return std::ranges::find(list, global) != list.end();
}

PickleValue argument(PickleValue arguments, size_t i, const std::string& where) {
  if (!arguments.is(PickleKind::kTuple) || i >= arguments.size())
    fail(ErrorKind::kCorrupt, "{}: the call that rebuilds it lacks argument {}", where, i);
  return arguments.item(i);
}

// The class of what a call makes, as it names one: of a subclass that wraps other tensors.
std::string_view class_made(PickleValue value) {
  if (!value.is(PickleKind::kObject)) return "";
  const std::string_view function = value.callable().text();
  const size_t place = function == kFromType ? 1 : 0;  // of the class among the arguments
  if (function != kFromType && function != "torch._utils._rebuild_wrapper_subclass")
    return function;
  const PickleValue arguments = value.arguments();
  if (arguments.size() <= place || !arguments.item(place).is(PickleKind::kGlobal)) return function;
  return arguments.item(place).text();
}

TorchCall unwrap_tensor(PickleValue value, const std::string& where) {
  for (int wraps = 0; wraps < kMaxTorchWraps && value.is(PickleKind::kObject); ++wraps) {
    std::string_view function = value.callable().text();
    PickleValue arguments = value.arguments();
    if (function == kFromType) {
      const PickleValue inner = argument(arguments, 0, where);
      if (!inner.is(PickleKind::kGlobal)) break;
      function = inner.text();
      arguments = argument(arguments, 2, where);
    }
    if (is_one_of(function, kTensorCalls)) return {function.substr(kTorchUtils.size()), arguments};
    if (!is_one_of(function, kParameterCalls))
      fail(ErrorKind::kCorrupt, "{}: a tensor expected, found {}", where, describe_unknown(value));
    value = argument(arguments, 0, where);
  }
  fail(ErrorKind::kCorrupt, "{}: a tensor expected, found {}", where, value.describe());
}

// Conjugate or negative: the elements would have to be computed.
void check_metadata(PickleValue arguments, size_t i, const std::string& where) {
  if (i >= arguments.size() || arguments.item(i).is_none()) return;
  const PickleValue metadata = to_dict(arguments.item(i), where + ": metadata");
  for (size_t k = 0; k < metadata.size(); ++k) {
    const PickleValue value = metadata.value(k);
    if (!value.is(PickleKind::kBool) || value.boolean())
      fail(ErrorKind::kCorrupt, "{}: its metadata has {} set, which is not supported", where,
           metadata.key(k).describe());
  }
}

// Of a storage's class: its element type; nothing for bytes.
std::optional<StorageDType> parse_storage_class(PickleValue global, const std::string& where) {
  const std::string_view name = global.is(PickleKind::kGlobal) ? global.text() : "";
  if (name == "torch.storage.UntypedStorage" || name == "torch.UntypedStorage") return std::nullopt;
  for (const TorchDType& row : kTorchDTypes) {
    for (const std::string_view module : {"torch.", "torch.cuda."}) {
      if (!row.storage.empty() && name.starts_with(module) &&
          name.substr(module.size()) == row.storage)
        return row.dtype;
    }
  }
  fail(ErrorKind::kCorrupt, "{}: storage type {} is not supported", where, global.describe());
}

void check_expansion(const TensorInfo& info, uint64_t storage_bytes, const std::string& where) {
  uint64_t bytes = 0;
  if (__builtin_mul_overflow(info.count(), size_of(info.dtype), &bytes))
    fail(ErrorKind::kCorrupt, "{}: the shape's product exceeds 64 bits", where);
  if (bytes > storage_bytes && bytes > kMaxExpandedBytes)
    fail(ErrorKind::kCorrupt,
         "{}: it claims {} bytes of a storage of {}, by strides of 0 or overlaps", where, bytes,
         storage_bytes);
}

}  // namespace

std::string torch_dtype_name(StorageDType dtype) {
  return fmt::format("torch.{}", torch_row(dtype).name);
}

std::optional<StorageDType> parse_torch_dtype(std::string_view global) {
  for (const TorchDType& row : kTorchDTypes) {
    if (global.starts_with("torch.") && global.substr(6) == row.name) return row.dtype;
  }
  return std::nullopt;
}

std::string torch_storage_name(StorageDType dtype) {
  const std::string_view name = torch_row(dtype).storage;
  return name.empty() ? "" : fmt::format("torch.{}", name);
}

std::vector<uint64_t> to_sizes(PickleValue value, const std::string& where) {
  if (value.is_call("torch.Size")) value = argument(value.arguments(), 0, where);
  const PickleValue items = to_sequence(value, where);
  if (items.size() > kMaxTorchRank)
    fail(ErrorKind::kCorrupt, "{}: {} dimensions, more than {}", where, items.size(),
         kMaxTorchRank);
  std::vector<uint64_t> sizes;
  for (size_t i = 0; i < items.size(); ++i) sizes.push_back(to_unsigned(items.item(i), where));
  return sizes;
}

std::string describe_unknown(PickleValue value) {
  const std::string_view made = class_made(value);
  if (made.ends_with("DTensor") || made.ends_with("ShardedTensor"))
    return fmt::format(
        "a {}, of which the file has one rank's shard; save what get_model_state_dict() gives with "
        "full_state_dict=True, or a directory with torch.distributed.checkpoint's save()",
        made.substr(made.rfind('.') + 1));
  if (made.empty()) return value.describe() + ", which gxp does not know";
  return fmt::format("{}(...), which gxp does not know", made);
}

bool is_tensor(PickleValue value) {
  if (!value.is(PickleKind::kObject)) return false;
  const std::string_view function = value.callable().text();
  return function == kFromType || is_one_of(function, kTensorCalls) ||
         is_one_of(function, kParameterCalls);
}

TorchStorage to_storage(PickleValue persistent, const std::string& where) {
  if (!persistent.is(PickleKind::kPersistent))
    fail(ErrorKind::kCorrupt, "{}: a storage expected, found {}", where, persistent.describe());
  const PickleValue id = to_sequence(persistent.arguments(), where + ": persistent id");
  if (id.size() < 5 || to_text(id.item(0), where) != "storage")
    fail(ErrorKind::kCorrupt, "{}: a persistent id that does not name a storage", where);
  if (id.size() > 5 && !id.item(5).is_none())
    fail(ErrorKind::kCorrupt,
         "{}: it has a storage view, a format of torch before 0.4; not supported", where);
  const auto dtype = parse_storage_class(id.item(1), where);
  TorchStorage storage{to_text(id.item(2), where + ": storage key"), 0, dtype};
  const uint64_t count = to_unsigned(id.item(4), where + ": storage size");
  if (__builtin_mul_overflow(count, dtype ? size_of(*dtype) : 1, &storage.bytes))
    fail(ErrorKind::kCorrupt, "{}: a storage of {} elements exceeds 64 bits", where, count);
  return storage;
}

TorchTensor to_tensor(PickleValue value, const std::string& where) {
  const TorchCall call = unwrap_tensor(value, where);
  const auto at = [&](size_t i) { return argument(call.arguments, i, where); };
  TorchTensor tensor{.storage = to_storage(at(0), where)};
  tensor.offset = to_unsigned(at(1), where + ": offset");
  tensor.shape = to_sizes(at(2), where + ": size");
  tensor.strides = to_sizes(at(3), where + ": stride");
  if (tensor.shape.size() != tensor.strides.size())
    fail(ErrorKind::kCorrupt, "{}: {} sizes, but {} strides", where, tensor.shape.size(),
         tensor.strides.size());
  const bool names_dtype = call.function == "_rebuild_tensor_v3";
  auto dtype = tensor.storage.dtype;
  if (names_dtype) dtype = parse_torch_dtype(at(6).is(PickleKind::kGlobal) ? at(6).text() : "");
  if (!dtype)
    fail(ErrorKind::kCorrupt, "{}: element type {} is not supported", where,
         names_dtype ? at(6).describe() : "of an UntypedStorage");
  tensor.dtype = *dtype;
  check_metadata(call.arguments, names_dtype ? 7 : 6, where);
  return tensor;
}

NamedTensor make_tensor(std::string name, Role role, const TorchTensor& tensor,
                        const FileRange& storage) {
  const std::string where = fmt::format("read {}: tensor '{}'", storage.file->path(), name);
  if (storage.bytes != tensor.storage.bytes)
    fail(ErrorKind::kCorrupt, "{}: storage '{}' has {} bytes at offset {}, the tensor needs {}",
         where, tensor.storage.key, storage.bytes, storage.offset, tensor.storage.bytes);
  StridedView view{storage, size_of(tensor.dtype), tensor.offset, tensor.shape, tensor.strides};
  if (!fits(view))
    fail(ErrorKind::kCorrupt, "{}: it reaches beyond its storage '{}' of {} bytes", where,
         tensor.storage.key, storage.bytes);
  TensorInfo info{std::move(name), role, tensor.dtype, tensor.shape};
  check_expansion(info, storage.bytes, where);
  return {std::move(info), [view = with_joined_axes(std::move(view))](uint64_t begin, Memory out) {
            read_strided(view, begin, out);
          }};
}

}  // namespace gxp
