#include <algorithm>

#include "lib/base/bytes.h"
#include "lib/base/error.h"
#include "lib/ckpt/gguf/header.h"
#include "lib/ckpt/gguf/layout.h"

namespace gxp {
namespace {

class GgufText {
 public:
  template <class Number>
  void add(Number number) {
    text_.append(reinterpret_cast<const char*>(&number), sizeof(number));
  }
  void add_bytes(std::string_view bytes) { text_ += bytes; }
  void add_text(std::string_view text) {
    add(uint64_t{text.size()});
    text_ += text;
  }
  void add_value(uint32_t value) { add(GgufType::kU32), add(value); }
  void add_value(float value) { add(GgufType::kF32), add(value); }
  void add_value(bool value) { add(GgufType::kBool), add(uint8_t{value}); }
  void add_value(const std::string& value) { add(GgufType::kText), add_text(value); }
  void add_value(const std::vector<int32_t>& values) { add_array(GgufType::kI32, values); }
  void add_value(const std::vector<float>& values) { add_array(GgufType::kF32, values); }
  void add_value(const std::vector<std::string>& values) {
    add_array_head(GgufType::kText, values.size());
    for (const std::string& value : values) add_text(value);
  }
  [[nodiscard]] std::string take() { return std::move(text_); }

 private:
  void add_array_head(GgufType type, size_t count) {
    add(GgufType::kArray), add(type), add(uint64_t{count});
  }
  template <class Number>
  void add_array(GgufType type, const std::vector<Number>& values) {
    add_array_head(type, values.size());
    for (const Number value : values) add(value);
  }

  std::string text_;
};

const GgmlType* ggml_type_of(StorageDType dtype) {
  const auto* const found = std::ranges::find(kGgmlTypes, dtype, &GgmlType::dtype);
  return found == std::end(kGgmlTypes) ? nullptr : found;
}

}  // namespace

void check_gguf_tensor(const TensorInfo& info) {
  if (ggml_type_of(info.dtype) == nullptr)
    fail(ErrorKind::kConfig, "write a GGUF file: tensor '{}' is {}, for which GGUF has no type",
         info.name, to_string(info.dtype));
  if (info.name.size() > kMaxGgufNameBytes)
    fail(ErrorKind::kConfig,
         "write a GGUF file: the name '{}' has {} bytes, in GGUF it may have {}", info.name,
         info.name.size(), kMaxGgufNameBytes);
  if (info.shape.size() > kMaxGgufDimensions)
    fail(ErrorKind::kConfig,
         "write a GGUF file: tensor '{}' has {} dimensions, in GGUF it may have {}", info.name,
         info.shape.size(), kMaxGgufDimensions);
}

std::string encode_gguf_keys(const std::vector<GgufKey>& keys) {
  GgufText text;
  for (const auto& [key, value] : keys) {
    text.add_text(key);
    std::visit([&](const auto& typed) { text.add_value(typed); }, value);
  }
  return text.take();
}

std::string make_gguf_header(const GgufKeys& keys, const std::vector<NamedTensor>& tensors) {
  GgufText text;
  text.add_bytes(kGgufMagic);
  text.add(kGgufVersion);
  text.add(uint64_t{tensors.size()});
  text.add(uint64_t{keys.count});
  text.add_bytes(keys.encoded);
  uint64_t offset = 0;
  for (const NamedTensor& tensor : tensors) {
    const TensorInfo& info = tensor.info;
    text.add_text(info.name);
    text.add(uint32_t(info.shape.size()));
    for (auto size = info.shape.rbegin(); size != info.shape.rend(); ++size) text.add(*size);
    text.add(ggml_type_of(info.dtype)->id);
    text.add(offset);
    offset = round_up(offset + info.bytes(), kGgufAlignment);
  }
  std::string header = text.take();
  if (header.size() > kMaxGgufHeaderBytes)
    fail(ErrorKind::kConfig,
         "write a GGUF file: its header, with the tokenizer, would take {} bytes, more than the {} "
         "that gxp reads",
         header.size(), kMaxGgufHeaderBytes);
  return header + gguf_padding(header.size());
}

std::string gguf_padding(uint64_t bytes) {
  return std::string(round_up(bytes, kGgufAlignment) - bytes, '\0');
}

}  // namespace gxp
