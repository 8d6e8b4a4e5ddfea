#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <set>
#include <utility>

#include "lib/base/dtype.h"
#include "lib/base/error.h"
#include "lib/base/text/joined.h"
#include "lib/ckpt/cast.h"
#include "lib/ckpt/peft/adapters.h"
#include "lib/ckpt/peft/peft.h"

namespace gxp {
namespace {

// One adapter: W(outputs, inputs) += factor * B(outputs, rank) A(rank, inputs).
struct Pair {
  std::vector<float> a = {}, b = {};
  uint64_t rank = 0, inputs = 0, outputs = 0;
  double factor = 1;
  bool transposed = false;  // W is stored (inputs, outputs)

  // What is added to the element with this number.
  [[nodiscard]] float added(uint64_t element) const {
    const uint64_t columns = transposed ? outputs : inputs;
    const uint64_t row = element / columns, column = element % columns;
    const float* const second = &b[(transposed ? column : row) * rank];
    const uint64_t input = transposed ? row : column;
    double sum = 0;
    for (uint64_t r = 0; r < rank; ++r) sum += double(second[r]) * double(a[r * inputs + input]);
    return float(factor * sum);
  }
};

template <class Number>
void add(const Pair& pair, uint64_t begin, Memory elements) {
  for (size_t i = 0; i * sizeof(Number) < elements.bytes; ++i) {
    Number value;
    std::memcpy(&value, elements.data + i * sizeof(Number), sizeof value);
    value = Number(float(value) + pair.added(begin + i));
    std::memcpy(elements.data + i * sizeof(Number), &value, sizeof value);
  }
}

// The function that adds to elements of this type; kConfig: there is none.
auto adder_of(const TensorInfo& matrix) {
  if (matrix.dtype == StorageDType::kF32) return add<float>;
  if (matrix.dtype == StorageDType::kBF16) return add<BFloat16>;
  if (matrix.dtype == StorageDType::kF16) return add<Float16>;
  fail(ErrorKind::kConfig, "merge: {} has type {}; adapters are merged into F32, F16 and BF16",
       matrix.name, to_string(matrix.dtype));
}

std::vector<float> floats_of(const NamedTensor& tensor) {
  std::vector<float> values(tensor.info.count());
  tensor.read(0, memory_of(values));
  return values;
}

Pair make_pair(const TensorInfo& matrix, const NamedTensor& a, const NamedTensor& b,
               const AdapterConfig& config) {
  const auto &first = a.info.shape, &second = b.info.shape;
  Pair pair{.factor = config.lora.factor(), .transposed = config.transposed};
  const bool fit = matrix.shape.size() == 2 && first.size() == 2 && second.size() == 2 &&
                   first[0] == uint64_t(config.lora.rank) && second[1] == first[0] &&
                   matrix.shape[pair.transposed ? 0 : 1] == first[1] &&
                   matrix.shape[pair.transposed ? 1 : 0] == second[0];
  if (!fit)
    fail(
        ErrorKind::kConfig,
        "merge: the adapter of {} has the shapes ({}) and ({}) with rank {}, which do not fit ({})",
        matrix.name, joined(first, ", "), joined(second, ", "), config.lora.rank,
        joined(matrix.shape, ", "));
  pair.rank = first[0];
  pair.inputs = first[1];
  pair.outputs = second[0];
  pair.a = floats_of(a);
  pair.b = floats_of(b);
  return pair;
}

// The names of the two tensors of a matrix's adapter.
std::pair<std::string, std::string> adapter_names(const std::string& matrix) {
  const std::string module = matrix.substr(0, matrix.rfind(".weight"));
  return {fmt::format("{}{}{}", kAdapterPrefix, module, kFirstSuffix),
          fmt::format("{}{}{}", kAdapterPrefix, module, kSecondSuffix)};
}

// Whether it is a weight of the model, unchanged, as PEFT saves the token table with an adapter, or
// the head with its own.
bool is_models_own(const NamedTensor& stored, const NamedTensors& model) {
  constexpr std::string_view kBase = ".base_layer.weight";
  std::string name = stored.info.name;
  if (!name.starts_with(kAdapterPrefix)) return false;
  if (name.ends_with(kBase)) name.replace(name.size() - kBase.size(), kBase.size(), ".weight");
  const NamedTensor* own = find_tensor(model, name.substr(kAdapterPrefix.size()));
  return own != nullptr && are_equal(*own, stored);
}

void check_all_merged(const NamedTensors& source, const std::set<std::string>& merged,
                      const NamedTensors& model) {
  for (const NamedTensor& tensor : source.tensors) {
    const std::string& name = tensor.info.name;
    if (tensor.info.role != Role::kWeight || merged.contains(name)) continue;
    if (is_adapter(tensor)) fail(ErrorKind::kConfig, "merge: the model has no matrix for {}", name);
    const bool is_adapters = source.format == "peft" || name.starts_with(kAdapterPrefix);
    if (is_adapters && !is_models_own(tensor, model))
      fail(ErrorKind::kConfig,
           "merge: the adapter has {}, which is neither lora_A nor lora_B of a matrix nor a weight "
           "of the model without a change; gxp merges no other tensors",
           name);
  }
}

}  // namespace

NamedTensors merge_adapters(NamedTensors model, const NamedTensors& source) {
  const AdapterConfig config = adapter_of(source);
  const auto overflowed = std::make_shared<OverflowCount>(0);  // owners: here and the readers
  const NamedTensors adapters = cast_weights(source, StorageDType::kF32, overflowed);
  const NamedTensors base = without_adapters(std::move(model));
  model = base;
  std::set<std::string> merged;
  for (NamedTensor& matrix : model.tensors) {
    const auto [first, second] = adapter_names(matrix.info.name);
    const NamedTensor* a = find_tensor(adapters, first);
    const NamedTensor* b = find_tensor(adapters, second);
    if (matrix.info.role != Role::kWeight || a == nullptr || b == nullptr) continue;
    merged.insert({first, second});
    // Owners: the readers.
    const auto pair = std::make_shared<Pair>(make_pair(matrix.info, *a, *b, config));
    matrix.read = [pair, add_to = adder_of(matrix.info), read = std::move(matrix.read)](
                      uint64_t begin, Memory out) {
      read(begin, out);
      add_to(*pair, begin, out);
    };
  }
  check_all_merged(source, merged, base);
  std::erase_if(model.config, [](const auto& pair) { return pair.first.starts_with("lora."); });
  return model;
}

}  // namespace gxp
