#include "lib/ckpt/llmc/llmc.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <iterator>
#include <memory>
#include <optional>

#include "lib/arch/architecture.h"
#include "lib/base/bytes.h"
#include "lib/base/error.h"
#include "lib/base/log.h"
#include "lib/ckpt/file.h"
#include "lib/ckpt/huggingface/config_json.h"
#include "lib/ckpt/huggingface/huggingface.h"
#include "lib/ckpt/huggingface/model_check.h"
#include "lib/ckpt/huggingface/model_tensors.h"
#include "lib/ckpt/tensor_views.h"

namespace gxp {
namespace {

using LlmcHeader = std::array<int32_t, 256>;
struct LlmcField {
  enum : size_t { kMagic, kVersion, kContext, kVocabulary, kLayers, kHeads, kChannels, kPadded };
};

constexpr int32_t kLlmcMagic = 20240326;
constexpr int32_t kLlmcF32 = 3;
constexpr int32_t kLlmcBF16 = 5;
constexpr double kLlmcNormEps = 1e-5;
constexpr size_t kLlmcVocabularyStep = 128;
constexpr int32_t kMostLlmcLayers = 4096;  // GPT-2 XL has 48; so small files take little memory

// The tensors of make_architecture() in the order of the file: the embedding's, then of the blocks
// the first of each layer, the second of each layer, and so on; then the head's.
template <class Tensor>
std::vector<Tensor> in_llmc_order(const std::vector<Tensor>& tensors, size_t layers) {
  constexpr size_t kBefore = 2;
  constexpr size_t kAfter = 2;
  const size_t kinds = (tensors.size() - kBefore - kAfter) / layers;
  std::vector<Tensor> ordered(tensors.begin(), tensors.begin() + kBefore);
  for (size_t kind = 0; kind < kinds; ++kind) {
    for (size_t layer = 0; layer < layers; ++layer)
      ordered.push_back(tensors[kBefore + layer * kinds + kind]);
  }
  ordered.insert(ordered.end(), tensors.end() - kAfter, tensors.end());
  return ordered;
}

std::vector<TensorSpec> specs_in_llmc_order(const ModelConfig& model) {
  std::vector<TensorSpec> specs;
  for (UnitSpec& unit : make_architecture(model).units)
    std::ranges::move(unit.tensors, std::back_inserter(specs));
  return in_llmc_order(specs, size_t(model.layers));
}

// Whether the file has the tensor transposed: all matrices but the two tables.
bool is_turned(std::string_view name, size_t dimensions) {
  return dimensions == 2 && name.starts_with("transformer.h.");
}

void check_llmc_sizes(const LlmcHeader& header, const std::string& path) {
  for (size_t field = LlmcField::kContext; field <= LlmcField::kPadded; ++field) {
    if (header[field] < 1)
      fail(ErrorKind::kCorrupt, "read {}: the size at byte {} is {}, at least 1 is needed", path,
           4 * field, header[field]);
  }
  if (header[LlmcField::kLayers] > kMostLlmcLayers)
    fail(ErrorKind::kCorrupt, "read {}: {} layers at byte {}; gxp reads at most {}", path,
         header[LlmcField::kLayers], 4 * LlmcField::kLayers, kMostLlmcLayers);
  if (header[LlmcField::kPadded] < header[LlmcField::kVocabulary])
    fail(ErrorKind::kCorrupt,
         "read {}: the padded vocabulary at byte {} is {}, below the {} tokens", path,
         4 * LlmcField::kPadded, header[LlmcField::kPadded], header[LlmcField::kVocabulary]);
  if (header[LlmcField::kChannels] % header[LlmcField::kHeads] != 0)
    fail(ErrorKind::kCorrupt, "read {}: {} heads at byte {} do not divide {} channels", path,
         header[LlmcField::kHeads], 4 * LlmcField::kHeads, header[LlmcField::kChannels]);
}

LlmcHeader read_llmc_header(const InputFile& file) {
  LlmcHeader header;
  if (file.bytes() < sizeof(header))
    fail(ErrorKind::kCorrupt, "read {}: truncated: {} bytes, and the header alone has {}",
         file.path(), file.bytes(), sizeof(header));
  file.read(0, memory_of(header));
  if (header[LlmcField::kMagic] != kLlmcMagic)
    fail(ErrorKind::kCorrupt, "read {}: it begins with {}; an llm.c model begins with {}",
         file.path(), header[LlmcField::kMagic], kLlmcMagic);
  const int32_t version = header[LlmcField::kVersion];
  if (version != kLlmcF32 && version != kLlmcBF16)
    fail(ErrorKind::kCorrupt, "read {}: version {} at byte 4; gxp reads {} (F32) and {} (BF16)",
         file.path(), version, kLlmcF32, kLlmcBF16);
  check_llmc_sizes(header, file.path());
  return header;
}

StorageDType dtype_of(const LlmcHeader& header) {
  return header[LlmcField::kVersion] == kLlmcF32 ? StorageDType::kF32 : StorageDType::kBF16;
}

// A block of C channels has 12 C^2 + 13 C parameters. Nothing beyond 64 bits.
std::optional<uint64_t> llmc_file_bytes(const LlmcHeader& header) {
  const auto c = uint64_t(header[LlmcField::kChannels]);
  const uint64_t tables =
      (uint64_t(header[LlmcField::kPadded]) + uint64_t(header[LlmcField::kContext])) * c;
  const auto blocks = checked_count({uint64_t(header[LlmcField::kLayers]), 12 * c + 13, c});
  uint64_t bytes = 0;
  if (!blocks || __builtin_add_overflow(tables + 2 * c, *blocks, &bytes) ||
      __builtin_mul_overflow(bytes, size_of(dtype_of(header)), &bytes) ||
      __builtin_add_overflow(bytes, sizeof(header), &bytes))
    return std::nullopt;
  return bytes;
}

void check_llmc_size(const LlmcHeader& header, const InputFile& file) {
  const auto bytes = llmc_file_bytes(header);
  if (bytes && *bytes == file.bytes()) return;
  fail(ErrorKind::kCorrupt, "read {}: the header declares {} bytes, the file has {}; it is {}",
       file.path(), bytes ? fmt::format("{}", *bytes) : "more than 2^64", file.bytes(),
       bytes && *bytes < file.bytes() ? "longer than its header says" : "truncated");
}

NamedTensor tensor_at(const std::shared_ptr<const InputFile>& file, uint64_t offset,
                      TensorInfo info) {
  const size_t element = size_of(info.dtype);
  return {std::move(info),
          [=](uint64_t begin, Memory out) { file->read(offset + begin * element, out); }};
}

// Of the rows of wte that are no tokens.
std::vector<uint64_t> unused_shape(const LlmcHeader& header) {
  return {uint64_t(header[LlmcField::kPadded] - header[LlmcField::kVocabulary]),
          uint64_t(header[LlmcField::kChannels])};
}

void warn_of_padding(const NamedTensor& padding, const std::string& path) {
  bool zero = true;
  stream(padding, [&](ConstMemory block) {
    zero &= std::all_of(block.data, block.data + block.bytes,
                        [](std::byte byte) { return byte == std::byte{0}; });
  });
  if (!zero)
    log_warn("{}: the last {} rows of wte are padding but not zero; they are left out", path,
             padding.info.shape[0]);
}

ModelConfig llmc_model(const LlmcHeader& header) {
  ModelConfig model;
  model.family = "gpt2";
  model.vocab_size = header[LlmcField::kVocabulary];
  model.context = header[LlmcField::kContext];
  model.hidden = header[LlmcField::kChannels];
  model.layers = header[LlmcField::kLayers];
  model.heads = header[LlmcField::kHeads];
  model.mlp_hidden = 4 * model.hidden;  // check_llmc_size() bounds it
  model.norm_eps = kLlmcNormEps;
  return model;
}

LlmcHeader make_llmc_header(const ModelConfig& model, StorageDType dtype) {
  LlmcHeader header = {};
  header[LlmcField::kMagic] = kLlmcMagic;
  header[LlmcField::kVersion] = dtype == StorageDType::kF32 ? kLlmcF32 : kLlmcBF16;
  header[LlmcField::kContext] = model.context;
  header[LlmcField::kVocabulary] = model.vocab_size;
  header[LlmcField::kLayers] = model.layers;
  header[LlmcField::kHeads] = model.heads;
  header[LlmcField::kChannels] = model.hidden;
  header[LlmcField::kPadded] = int32_t(round_up(size_t(model.vocab_size), kLlmcVocabularyStep));
  return header;
}

struct LlmcPlan {
  ModelConfig model;
  std::vector<NamedTensor> tensors;  // in gxp's order
};

LlmcPlan plan_llmc(const NamedTensors& source) {
  const std::string family = family_told(source.config);
  if (!family.empty() && family != "gpt2")
    fail(ErrorKind::kConfig,
         "write an llm.c file: llm.c takes GPT-2 models, and the source is a {}", family);
  if (const std::string reason = foreign_model(source); !reason.empty())
    fail(ErrorKind::kConfig, "write an llm.c file: gxp does not implement the model: {}", reason);
  if (family.empty())
    fail(ErrorKind::kConfig,
         "write an llm.c file: the source does not describe its model; convert from gxp's format "
         "or from a directory with a config.json");
  LlmcPlan plan;
  plan.model = model_of(source.config);
  if (plan.model.norm_eps != kLlmcNormEps)
    fail(ErrorKind::kConfig, "write an llm.c file: llm.c uses norm_eps {}, the source has {}",
         kLlmcNormEps, plan.model.norm_eps);
  constexpr std::string_view kTold[] = {"family", "vocab_size", "context",  "hidden",
                                        "layers", "heads",      "norm_eps", "mlp_hidden"};
  if (const std::string other = setting_beyond(plan.model, kTold); !other.empty())
    fail(ErrorKind::kConfig, "write an llm.c file: {}, which llm.c does not compute", other);
  if (plan.model.mlp_width() != int64_t{4} * plan.model.hidden)
    fail(ErrorKind::kConfig,
         "write an llm.c file: model.mlp_hidden is {}, and llm.c computes with 4 times hidden, {}",
         plan.model.mlp_width(), int64_t{4} * plan.model.hidden);
  plan.tensors = weights_of_model(source, plan.model, "write an llm.c file");
  const StorageDType dtype = plan.tensors.front().info.dtype;
  for (const NamedTensor& tensor : plan.tensors) {
    const TensorInfo& info = tensor.info;
    if (info.dtype != dtype || (dtype != StorageDType::kF32 && dtype != StorageDType::kBF16))
      fail(ErrorKind::kConfig,
           "write an llm.c file: all tensors must be F32 or all BF16, and '{}' is {}", info.name,
           to_string(info.dtype));
  }
  return plan;
}

}  // namespace

bool is_llmc(const std::string& path) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error)) return false;
  const InputFile file(path);
  int32_t magic = 0;
  if (file.bytes() < sizeof(magic)) return false;
  file.read(0, {reinterpret_cast<std::byte*>(&magic), sizeof(magic)});
  return magic == kLlmcMagic;
}

NamedTensors read_llmc(const std::string& path) {
  const auto file = std::make_shared<const InputFile>(path);  // owners: the readers of its tensors
  const LlmcHeader header = read_llmc_header(*file);
  check_llmc_size(header, *file);
  const ModelConfig model = llmc_model(header);
  NamedTensors result{.format = "llmc", .tensors = {}, .config = settings_of(model)};
  uint64_t offset = sizeof(header);
  const auto next = [&](const std::string& name, std::vector<uint64_t> shape) {
    NamedTensor tensor =
        tensor_at(file, offset, {name, Role::kWeight, dtype_of(header), std::move(shape)});
    offset += tensor.info.bytes();
    return tensor;
  };
  for (const TensorSpec& spec : specs_in_llmc_order(model)) {
    std::vector<uint64_t> shape(spec.shape.begin(), spec.shape.end());
    if (is_turned(spec.name, shape.size())) {
      std::ranges::reverse(shape);
      result.tensors.push_back(transposed(next(spec.name, std::move(shape))));
      continue;
    }
    result.tensors.push_back(next(spec.name, std::move(shape)));
    if (result.tensors.size() == 1)  // the table of tokens
      warn_of_padding(next("padding", unused_shape(header)), path);
  }
  return result;
}

void check_fits_llmc(const NamedTensors& tensors) { plan_llmc(tensors); }

void write_llmc(const NamedTensors& tensors, const std::string& path) {
  const auto [model, weights] = plan_llmc(tensors);
  const TensorInfo& table = weights.front().info;
  const LlmcHeader header = make_llmc_header(model, table.dtype);
  OutputFile file(path);
  file.write(memory_of(header));
  const auto write = [&](ConstMemory block) { file.write(block); };
  const auto unused = checked_count(unused_shape(header)).value() * size_of(table.dtype);
  for (const NamedTensor& tensor : in_llmc_order(weights, size_t(model.layers))) {
    const TensorInfo& info = tensor.info;
    stream(is_turned(info.name, info.shape.size()) ? transposed(tensor) : tensor, write);
    if (info.name == table.name) file.write(std::string(unused, '\0'));
  }
  file.close();
}

}  // namespace gxp
