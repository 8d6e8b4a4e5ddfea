#include "lib/train/model/weights_file.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <set>
#include <span>
#include <utility>

#include "lib/base/log.h"
#include "lib/ckpt/format.h"
#include "lib/ckpt/huggingface/config_json.h"
#include "lib/ckpt/huggingface/model_check.h"
#include "lib/ckpt/peft/peft.h"

namespace gxp {
namespace {

template <class Number>
void convert(ConstMemory from, float* to) {
  const auto* numbers = reinterpret_cast<const Number*>(from.data);
  std::transform(numbers, numbers + from.bytes / sizeof(Number), to,
                 [](Number number) { return float(number); });
}

// `to`: the elements from `begin` on.
void read_as_f32(const NamedTensor& from, uint64_t begin, const Tensor& to) {
  if (from.info.dtype == StorageDType::kF32) return from.read(begin, to.memory);
  std::vector<std::byte> stored(to.count() * size_of(from.info.dtype));
  from.read(begin, memory_of(stored));
  std::vector<float> converted;
  copy_on_host(to.memory, as_f32(memory_of(std::as_const(stored)), from.info.dtype, converted));
}

void report_unrecorded(const std::string& path, const NamedTensors& file,
                       const ModelConfig& model) {
  const std::string keys = unrecorded_settings(file, model);
  if (!keys.empty()) log_info("{}: not recorded in the file, taken from this run: {}", path, keys);
  const auto text = file.metadata.find(kConfigText);
  const std::string dropout =
      text == file.metadata.end() ? "" : describe_dropout(text->second, path);
  if (!dropout.empty())
    log_info("{}: trained with dropout ({}); gxp trains without", path, dropout);
}

}  // namespace

void require_finite(ConstMemory f32, std::string_view act, std::string_view name, uint64_t first) {
  const std::span values(reinterpret_cast<const float*>(f32.data), f32.bytes / sizeof(float));
  const auto is_finite = [](float value) { return std::isfinite(value); };
  // Counted without a branch, so by vectors; who is it is asked of a bad one only.
  size_t finite = 0;
  for (const float value : values) finite += size_t(is_finite(value));
  if (finite == values.size()) return;
  const auto bad = std::ranges::find_if_not(values, is_finite);
  fail(ErrorKind::kCorrupt, "{}: element {} of {} is {}, and {} more are not finite", act,
       first + uint64_t(bad - values.begin()), name, *bad, values.size() - finite - 1);
}

bool becomes_f32(StorageDType dtype) {
  return dtype == StorageDType::kF32 || dtype == StorageDType::kF64 ||
         dtype == StorageDType::kBF16 || dtype == StorageDType::kF16;
}

ConstMemory as_f32(ConstMemory elements, StorageDType dtype, std::vector<float>& converted) {
  if (dtype == StorageDType::kF32) return elements;
  converted.resize(elements.bytes / size_of(dtype));
  if (dtype == StorageDType::kF64) convert<double>(elements, converted.data());
  if (dtype == StorageDType::kBF16) convert<BFloat16>(elements, converted.data());
  if (dtype == StorageDType::kF16) convert<Float16>(elements, converted.data());
  return memory_of(std::as_const(converted));
}

namespace {

// Of tensors of the file, under their names there.
FillTensor fill_from(const std::string& path, std::shared_ptr<const NamedTensors> file) {
  return [path, file = std::move(file)](const HeldTensor& tensor, const Tensor& weight) {
    const NamedTensor* found = find_tensor(*file, tensor.spec->name);
    if (found == nullptr)
      fail(ErrorKind::kConfig, "load weights from {}: it has no {}", path, tensor.spec->name);
    if (!becomes_f32(found->info.dtype))
      fail(ErrorKind::kConfig,
           "load weights from {}: tensor {} has type {}; F64, F32, F16 and BF16 can be read", path,
           tensor.spec->name, to_string(found->info.dtype));
    read_as_f32(*found, tensor.elements.begin, weight);
    require_finite(weight.memory, "load weights from " + path, tensor.spec->name,
                   tensor.elements.begin);
  };
}

}  // namespace

FillTensor weights_from(const std::string& path, const ModelConfig& model, bool reports) {
  if (is_peft(path))
    fail(ErrorKind::kConfig,
         "load weights from {}: it holds adapters alone; give it as lora.init, and the model that "
         "they adapt as model.init",
         path);
  auto file = std::make_shared<const NamedTensors>(read_weights(path));
  if (has_adapters(*file))
    fail(ErrorKind::kConfig,
         "load weights from {}: it holds LoRA adapters beside the weights; gxp convert-ckpt {} "
         "MODEL --to huggingface --merge {} adds them to the weights",
         path, path, path);
  if (const auto mismatch = model_mismatch(*file, model); !mismatch.empty())
    fail(ErrorKind::kConfig, "load weights from {}: {}", path, mismatch);
  if (reports) report_unrecorded(path, *file, model);
  return fill_from(path, std::move(file));
}

FillTensor adapters_from(const std::string& path, const Architecture& architecture) {
  if (!is_peft(path))
    fail(ErrorKind::kConfig,
         "load adapters from {}: it is not a directory as PEFT saves them; gxp convert-ckpt --to "
         "peft makes one of a run with [lora]",
         path);
  auto file = std::make_shared<const NamedTensors>(read_peft(path));
  std::set<std::string> places;
  for (const UnitSpec& unit : architecture.units) {
    for (const TensorSpec& spec : unit.tensors) {
      if (!spec.adapter) continue;
      (void)require_weight(*file, spec.name, {spec.shape.begin(), spec.shape.end()}, path);
      places.insert(spec.name);
    }
  }
  for (const NamedTensor& tensor : file->tensors) {
    if (!places.contains(tensor.info.name))
      fail(ErrorKind::kConfig, "load adapters from {}: {} has no place in this run's [lora]", path,
           tensor.info.name);
  }
  return fill_from(path, std::move(file));
}

}  // namespace gxp
