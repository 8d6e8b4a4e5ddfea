#include "lib/text/byte_tokenizer.h"

namespace gxp {
namespace {

constexpr int32_t kByteIds = 256;

class ByteDecoder final : public TokenDecoder {
 public:
  std::string put(int32_t id) override {
    return id >= 0 && id < kByteIds ? std::string(1, char(id)) : "";
  }
};

class ByteTokenizer final : public Tokenizer {
 public:
  void encode(std::string_view text, std::vector<int32_t>& ids,
              std::vector<ByteSpan>* spans) const override {
    for (const char byte : text) ids.push_back(static_cast<unsigned char>(byte));
    for (uint32_t i = 0; spans != nullptr && i < text.size(); ++i) spans->push_back({i, i + 1});
  }
  [[nodiscard]] std::unique_ptr<TokenDecoder> decoder(bool /*skip_special*/) const override {
    return std::make_unique<ByteDecoder>();
  }
  [[nodiscard]] int32_t vocabulary_end() const override { return kByteIds; }
  [[nodiscard]] std::optional<int32_t> find(std::string_view token) const override {
    if (token.size() != 1) return std::nullopt;
    return static_cast<unsigned char>(token[0]);
  }
  [[nodiscard]] const std::vector<int32_t>& prefix() const override { return none_; }
  [[nodiscard]] const std::vector<int32_t>& suffix() const override { return none_; }
  [[nodiscard]] std::string digest() const override { return "bytes"; }
  [[nodiscard]] std::string description() const override { return "bytes, 256 tokens"; }

 private:
  const std::vector<int32_t> none_ = {};
};

}  // namespace

std::shared_ptr<const Tokenizer> byte_tokenizer() { return std::make_shared<ByteTokenizer>(); }

}  // namespace gxp
