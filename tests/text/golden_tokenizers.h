// The golden files of tests/data/text.
#pragma once

#include <sodium.h>

#include <fstream>
#include <iterator>
#include <span>
#include <string>
#include <vector>

#include "lib/base/json/json.h"
#include "lib/text/tokenizer.h"
#include "lib/text/unicode/valid_utf8.h"

namespace gxp {

inline const std::string kTextData = std::string(GXP_TEST_DATA) + "/text/";

inline std::string content_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}
inline Json json_at(const std::string& path) { return parse_json(content_of(path), path); }
inline std::string folder_of(const std::string& name) { return kTextData + "tokenizers/" + name; }

inline std::string sha256_of(std::string_view bytes) {
  unsigned char hash[crypto_hash_sha256_BYTES];
  crypto_hash_sha256(hash, reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size());
  std::string text(2 * sizeof hash + 1, '\0');
  sodium_bin2hex(text.data(), text.size(), hash, sizeof hash);
  text.pop_back();
  return text;
}

inline std::vector<int32_t> ids_of(const Tokenizer& tokenizer, std::string_view text) {
  std::vector<int32_t> ids;
  tokenizer.encode(text, ids);
  return ids;
}

// As the golden files hash them.
inline std::string sha256_of(const std::vector<int32_t>& ids) {
  return sha256_of({reinterpret_cast<const char*>(ids.data()), ids.size() * sizeof(int32_t)});
}

// The text that a corpus' golden ids are of.
inline std::string corpus_text(const Json& corpus) {
  std::string text =
      with_valid_utf8(content_of(kTextData + "corpora/" + corpus["input"].get<std::string>()));
  if (corpus.contains("note")) std::erase(text, '\0');  // "NUL removed before encoding"
  if (!corpus.contains("characters") || !corpus["characters"].is_number()) return text;
  size_t at = 0;
  for (int left = corpus["characters"]; at < text.size(); ++at)
    if ((text[at] & 0xc0) != 0x80 && --left < 0) break;
  return text.substr(0, at);
}

}  // namespace gxp
