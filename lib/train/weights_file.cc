#include "lib/train/weights_file.h"

#include <algorithm>

#include "lib/ckpt/format.h"

namespace gxp {
namespace {

template <class Half>
void widen(const NamedTensor& from, uint64_t begin, const Tensor& to) {
  std::vector<Half> narrow(to.count());
  from.read(begin, memory_of(narrow));
  float* out = to.data<float>();
  for (size_t i = 0; i < narrow.size(); ++i) out[i] = float(narrow[i]);
}

}  // namespace

void read_as_f32(const NamedTensor& from, uint64_t begin, const Tensor& to,
                 const std::string& path) {
  switch (from.info.dtype) {
    case StorageDType::kF32:
      return from.read(begin, to.memory);
    case StorageDType::kF64:
      return widen<double>(from, begin, to);
    case StorageDType::kBF16:
      return widen<BFloat16>(from, begin, to);
    case StorageDType::kF16:
      return widen<Float16>(from, begin, to);
    default:
      fail(ErrorKind::kConfig, "read {}: tensor {} has type {}; F64, F32, F16 and BF16 can be read",
           path, from.info.name, to_string(from.info.dtype));
  }
}

void load_weights(const std::string& path, HeldState& state) {
  const NamedTensors file = read_weights(path);
  state.fill_weights([&](const HeldTensor& tensor, const Tensor& weight) {
    const NamedTensor* found = find_tensor(file, tensor.spec->name);
    if (found == nullptr)
      fail(ErrorKind::kConfig,
           "load weights from {}: it has no tensor {}; does model.* describe this model?", path,
           tensor.spec->name);
    if (!std::ranges::equal(found->info.shape, tensor.spec->shape))
      fail(ErrorKind::kConfig,
           "load weights from {}: tensor {} has shape ({}), model.* asks for ({})", path,
           tensor.spec->name, fmt::join(found->info.shape, ", "),
           fmt::join(tensor.spec->shape, ", "));
    read_as_f32(*found, tensor.elements.begin, weight, path);
  });
}

}  // namespace gxp
