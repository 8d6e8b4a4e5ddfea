#include "lib/ckpt/gguf/model.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <optional>

#include "lib/arch/architecture.h"
#include "lib/arch/family.h"
#include "lib/base/text/joined.h"
#include "lib/ckpt/gguf/families.h"
#include "lib/ckpt/gguf/settings.h"
#include "lib/ckpt/tensor_views.h"

namespace gxp {
namespace {

constexpr const char* kWidenedFrom = "gxp.widened_from";
constexpr const char* kUnshifted = "gxp.unshifted.";
constexpr std::string_view kTokenTable = "token_embd.weight";
constexpr std::string_view kGgufHead = "output.weight";
constexpr std::string_view kRopeFreqs = "rope_freqs.weight";

using GgufByName = std::map<std::string, const NamedTensor*, std::less<>>;

bool is_always_f32(const TensorInfo& theirs) {
  return theirs.shape.size() <= 1 || theirs.name == "position_embd.weight";
}

bool is_narrow(StorageDType dtype) {
  return dtype == StorageDType::kBF16 || dtype == StorageDType::kF16;
}

HeadParts parts_of_heads(const ModelConfig& model) {
  return {uint64_t(model.heads), 3, uint64_t(model.channels_per_head())};
}

std::vector<float> floats_in(const std::string& bytes) {
  std::vector<float> floats(bytes.size() / sizeof(float));
  std::memcpy(floats.data(), bytes.data(), floats.size() * sizeof(float));
  return floats;
}

std::vector<float> read_floats(const NamedTensor& tensor) {
  std::vector<float> floats(tensor.info.count());
  tensor.read(0, memory_of(floats));
  return floats;
}

NamedTensor tensor_of(TensorInfo info, std::vector<float> values) {
  return {std::move(info), [values = std::move(values)](uint64_t begin, Memory out) {
            std::memcpy(out.data, values.data() + begin, out.bytes);
          }};
}

// ---- reading

// The layers' biases are all there or all absent; one that is missing is told later.
bool has_tensor(const GgufByName& tensors, std::string_view name) {
  return tensors.find(name) != tensors.end();
}

std::optional<std::vector<float>> rope_freqs_in(const GgufByName& tensors) {
  const auto found = tensors.find(kRopeFreqs);
  if (found == tensors.end()) return std::vector<float>();
  const TensorInfo& info = found->second->info;
  constexpr uint64_t kMost = 1 << 16;  // channels of a head
  if (info.dtype != StorageDType::kF32 || info.shape.size() != 1 || info.shape[0] == 0 ||
      info.shape[0] > kMost)
    return std::nullopt;
  return read_floats(*found->second);
}

GgufTensorFacts facts_of(const GgufByName& tensors, const GgufFamily& row) {
  GgufTensorFacts facts{.tensors = tensors.size()};
  const auto table = tensors.find(kTokenTable);
  if (table == tensors.end() || table->second->info.shape.size() != 2) return facts;
  facts.vocabulary = table->second->info.shape[0];
  const auto head = tensors.find(kGgufHead);
  // Older converters write the tied head of a GPT-2.
  facts.ties_head =
      head == tensors.end() || (row.family == "gpt2" && are_equal(*head->second, *table->second));
  facts.has_attention_bias = has_tensor(tensors, "blk.0.attn_q.bias");
  facts.has_mlp_bias = has_tensor(tensors, "blk.0.ffn_up.bias");
  return facts;
}

// The norm's weights less 1: those that the file keeps, if they are still the tensor's.
NamedTensor unshifted(const NamedTensor& stored, const GgufHeader& header) {
  const auto* const array = find_gguf_value<GgufArray>(header, kUnshifted + stored.info.name);
  if (array == nullptr) return plus(stored, -1);
  std::vector<float> values = floats_in(array->floats);
  const bool are_its = std::ranges::equal(values, read_floats(stored),
                                          [](float a, float b) { return a + 1.0f == b; });
  return are_its ? tensor_of(stored.info, std::move(values)) : plus(stored, -1);
}

struct GgufSource {
  const GgufHeader& header;
  const GgufFamily& row;
  const ModelConfig& model;
  std::optional<StorageDType> widened_from;
};

NamedTensor in_our_form(const NamedTensor& stored, GgufForm form, const GgufSource& source) {
  const uint64_t head_size = uint64_t(source.model.channels_per_head());
  switch (form) {
    case GgufForm::kPlain:
      return stored;
    case GgufForm::kTransposed:
      return transposed(stored);
    case GgufForm::kPairs:
      return with_rotary_rows(stored, head_size, RotaryRows::kHalves);
    case GgufForm::kParts:
      return with_head_rows(stored, parts_of_heads(source.model), HeadRows::kByHead);
    case GgufForm::kShifted:
      return unshifted(stored, source.header);
  }
  return stored;
}

// The tensor under gxp's name and in its layout.
NamedTensor from_gguf(const NamedTensor& stored, GgufForm form, const std::string& ours,
                      const GgufSource& source) {
  NamedTensor tensor = in_our_form(stored, form, source);
  const bool was_narrow = source.widened_from && is_narrow(*source.widened_from) &&
                          is_always_f32(stored.info) && stored.info.dtype == StorageDType::kF32;
  if (was_narrow) tensor = narrowed(std::move(tensor), *source.widened_from);
  tensor.info.name = ours;
  return tensor;
}

std::string text_of(const GgufHeader& header, const std::string& key) {
  const auto* const text = find_gguf_value<std::string>(header, key);
  return text == nullptr ? "" : *text;
}

// Moves the model's tensors out of `left`.
Support take_tensors(const GgufSource& source, GgufByName& left, std::vector<NamedTensor>& taken) {
  for (const UnitSpec& unit : make_architecture(source.model).units) {
    for (const TensorSpec& spec : unit.tensors) {
      const GgufPlace place = gguf_place(spec, source.row);
      const auto found = left.find(place.name);
      if (found == left.end()) return {false, fmt::format("{} is missing", place.name)};
      const TensorInfo& info = found->second->info;
      if (info.shape != gguf_shape(spec, place.form))
        return {false, fmt::format("{} has the shape ({})", place.name, joined(info.shape, ", "))};
      if (place.form == GgufForm::kShifted && info.dtype != StorageDType::kF32)
        return {false, fmt::format("{} is {}, not F32", place.name, to_string(info.dtype))};
      taken.push_back(from_gguf(*found->second, place.form, spec.name, source));
      left.erase(found);
    }
  }
  if (source.model.ties_head()) left.erase(std::string(kGgufHead));  // the table
  left.erase(std::string(kRopeFreqs));
  if (left.empty()) return {};
  return {false, fmt::format("{} does not belong to such a model", left.begin()->first)};
}

// ---- writing

// The type of all that llama.cpp wants in F32, if it is one narrow type.
std::optional<StorageDType> narrow_type(const std::vector<TensorInfo>& always_f32) {
  std::optional<StorageDType> type;
  for (const TensorInfo& info : always_f32) {
    if (!is_narrow(info.dtype) || info.dtype != type.value_or(info.dtype)) return std::nullopt;
    type = info.dtype;
  }
  return type;
}

uint32_t file_type(StorageDType dtype) {
  if (dtype == StorageDType::kF16) return 1;
  return dtype == StorageDType::kBF16 ? 32 : 0;
}

NamedTensor in_their_form(const NamedTensor& weight, GgufForm form, const ModelConfig& model) {
  const uint64_t head_size = uint64_t(model.channels_per_head());
  switch (form) {
    case GgufForm::kPlain:
      return weight;
    case GgufForm::kTransposed:
      return transposed(weight);
    case GgufForm::kPairs:
      return with_rotary_rows(weight, head_size, RotaryRows::kPairs);
    case GgufForm::kParts:
      return with_head_rows(weight, parts_of_heads(model), HeadRows::kByPart);
    case GgufForm::kShifted:
      return plus(is_narrow(weight.info.dtype) ? widened(weight) : weight, 1);
  }
  return weight;
}

// Whether adding 1 and taking it away again gives the same bits.
bool survives_shift(const std::vector<float>& values) {
  return std::ranges::all_of(values, [](float value) {
    const float back = (value + 1.0f) - 1.0f;
    return std::bit_cast<uint32_t>(back) == std::bit_cast<uint32_t>(value);
  });
}

void add_weight(const NamedTensor& weight, const GgufPlace& place, const ModelConfig& model,
                GgufModel& made) {
  const bool is_shifted = place.form == GgufForm::kShifted;
  if (is_shifted && weight.info.dtype != StorageDType::kF32 && !is_narrow(weight.info.dtype))
    fail(ErrorKind::kConfig,
         "write a GGUF file: {} is {}, and the norms of a {} must be F32, "
         "BF16 or F16",
         weight.info.name, to_string(weight.info.dtype), model.family);
  if (is_shifted) {
    std::vector<float> values =
        read_floats(is_narrow(weight.info.dtype) ? widened(weight) : weight);
    if (!survives_shift(values)) made.keys.emplace_back(kUnshifted + place.name, std::move(values));
  }
  NamedTensor tensor = in_their_form(weight, place.form, model);
  tensor.info.name = place.name;
  if (is_always_f32(tensor.info) && is_narrow(tensor.info.dtype)) tensor = widened(tensor);
  made.tensors.push_back(std::move(tensor));
}

// As the reader of a header keeps it.
GgufValue to_read(const GgufKey::second_type& value) {
  if (const auto* size = std::get_if<uint32_t>(&value)) return uint64_t{*size};
  if (const auto* number = std::get_if<float>(&value)) return *number;
  if (const auto* flag = std::get_if<bool>(&value)) return *flag;
  if (const auto* text = std::get_if<std::string>(&value)) return *text;
  if (const auto* values = std::get_if<std::vector<float>>(&value))
    return GgufArray{{reinterpret_cast<const char*>(values->data()), values->size() * 4}};
  return GgufArray{};
}

// Reads what would be written: all that a reader would make another model of is refused.
void check_is_said(const GgufModel& made, const GgufFamily& row, const ModelConfig& model) {
  GgufHeader header;
  for (const auto& [key, value] : made.keys) header.keys.emplace(key, to_read(value));
  GgufByName tensors;
  for (const NamedTensor& tensor : made.tensors) tensors.emplace(tensor.info.name, &tensor);
  GgufTensorFacts facts = facts_of(tensors, row);
  facts.rope_freqs = rope_freqs_in(tensors).value();
  ModelConfig said;
  if (const Support read = read_gguf_settings(header, row, facts, said); !read)
    fail(ErrorKind::kConfig, "write a GGUF file: {}", read.reason);
  if (const std::string problem = gguf_cannot_say(model, said); !problem.empty())
    fail(ErrorKind::kConfig, "write a GGUF file: {}", problem);
}

}  // namespace

Support take_gguf_model(const GgufHeader& header, std::vector<NamedTensor>& tensors,
                        ModelConfig& model) {
  const GgufFamily* row = told_gguf_family(header);
  if (row == nullptr)
    return {false, fmt::format("general.architecture is '{}', none of {}",
                               text_of(header, kArchitectureKey), gguf_families_in_words())};
  GgufByName left;
  for (const NamedTensor& tensor : tensors) left.emplace(tensor.info.name, &tensor);
  GgufTensorFacts facts = facts_of(left, *row);
  auto rope_freqs = rope_freqs_in(left);
  if (!rope_freqs) return {false, fmt::format("{} is no list of F32", kRopeFreqs)};
  facts.rope_freqs = std::move(*rope_freqs);
  ModelConfig read;
  if (Support taken = read_gguf_settings(header, *row, facts, read); !taken) return taken;
  std::vector<NamedTensor> taken;
  const GgufSource source{header, *row, read, parse_storage_dtype(text_of(header, kWidenedFrom))};
  if (Support all = take_tensors(source, left, taken); !all) return all;
  tensors = std::move(taken);
  model = read;
  return {};
}

GgufModel make_gguf_model(const std::vector<NamedTensor>& weights, const ModelConfig& model) {
  const GgufFamily* row = find_gguf_family(model.family);
  GXP_ASSERT(row != nullptr);  // families.cc has all of gxp's
  GgufModel made{.keys = gguf_keys(model), .tensors = {}};
  made.keys.emplace_back("general.file_type", file_type(weights.front().info.dtype));
  std::vector<TensorInfo> always_f32;
  auto weight = weights.begin();
  for (const UnitSpec& unit : make_architecture(model).units) {
    for (const TensorSpec& spec : unit.tensors) {
      GXP_ASSERT(weight != weights.end() && weight->info.name == spec.name);
      add_weight(*weight, gguf_place(spec, *row), model, made);
      if (is_always_f32(made.tensors.back().info)) always_f32.push_back(weight->info);
      ++weight;
    }
  }
  if (model.rope_scaling == RopeScaling::kLlama3) {
    std::vector<float> divisors = rope_freqs_of(model);
    TensorInfo info{.name = std::string(kRopeFreqs), .shape = {divisors.size()}};
    made.tensors.push_back(tensor_of(std::move(info), std::move(divisors)));
  }
  if (const auto narrow = narrow_type(always_f32))
    made.keys.emplace_back(kWidenedFrom, std::string(to_string(*narrow)));
  check_is_said(made, *row, model);
  return made;
}

}  // namespace gxp
