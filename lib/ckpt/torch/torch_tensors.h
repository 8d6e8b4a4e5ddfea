// Tensors in torch's pickles: the call that would rebuild the tensor, over a persistent
// id that names a storage.
//
//   _rebuild_tensor_v2(storage, offset, size, stride, requires_grad, hooks[, metadata])
//   _rebuild_tensor_v3(storage, offset, size, stride, requires_grad, hooks, dtype[, metadata])
//   _rebuild_tensor(storage, offset, size, stride)
//   _rebuild_parameter(tensor, requires_grad, hooks), _rebuild_parameter_with_state(...)
//   _rebuild_from_type_v2(function, type, arguments, state)
//   storage = ("storage", torch.FloatStorage, key, location, numel[, view_metadata])
// offset and stride count elements, numel those of the storage's class (bytes: UntypedStorage). All
// but v3 have the element type of that class.
//
// A tensor is hostile until checked: sizes and strides are not negative and as many; each element
// lies in its storage; the storage has exactly the bytes that its numel says (torch's own check
// against CVE-2026-24747); a tensor that is larger than its storage, which only strides of 0 or
// overlaps can make, has at most 64 MiB. Conjugate and negative views and complex128 are refused.
// Source: torch 2.15, torch/_utils.py, torch/_tensor.py, torch/serialization.py.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lib/ckpt/named_tensors.h"
#include "lib/ckpt/torch/pickle.h"
#include "lib/ckpt/zip/file_range.h"

namespace gxp {

constexpr uint64_t kMaxExpandedBytes = uint64_t{64} << 20;

struct TorchStorage {
  std::string key;
  uint64_t bytes = 0;
  std::optional<StorageDType> dtype = {};  // nothing: an UntypedStorage
};

struct TorchTensor {
  TorchStorage storage;
  StorageDType dtype = StorageDType::kF32;
  uint64_t offset = 0;
  std::vector<uint64_t> shape = {};
  std::vector<uint64_t> strides = {};
};

// "torch.bfloat16", which is the global of an element type.
std::string torch_dtype_name(StorageDType dtype);
std::optional<StorageDType> parse_torch_dtype(std::string_view global);
// "torch.BFloat16Storage"; "" for types that have none, and are written as v3.
std::string torch_storage_name(StorageDType dtype);

// A tuple or list of numbers, or a torch.Size of one. kCorrupt.
std::vector<uint64_t> to_sizes(PickleValue value, const std::string& where);

// Whether the value is a call of one of the functions above. The arguments are ignored.
bool is_tensor(PickleValue value);

// For messages: a value that is no tensor that gxp reads, and what to do where that is known.
std::string describe_unknown(PickleValue value);

// `value` is what BINPERSID was given. kCorrupt, naming `where`.
TorchStorage to_storage(PickleValue persistent, const std::string& where);
// kCorrupt, naming `where` and, if it is no tensor, what it is: the global of what would be called.
TorchTensor to_tensor(PickleValue value, const std::string& where);

// The tensor, read on demand. `storage` has the bytes that the tensor's storage says. kCorrupt,
// naming the file and the tensor.
NamedTensor make_tensor(std::string name, Role role, const TorchTensor& tensor,
                        const FileRange& storage);

}  // namespace gxp
