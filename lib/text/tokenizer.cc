#include "lib/text/tokenizer.h"

namespace gxp {

std::string Tokenizer::decode(std::span<const int32_t> ids, bool skip_special) const {
  const std::unique_ptr<TokenDecoder> tokens = decoder(skip_special);
  std::string text;
  for (const int32_t id : ids) text += tokens->put(id);
  return text;
}

}  // namespace gxp
