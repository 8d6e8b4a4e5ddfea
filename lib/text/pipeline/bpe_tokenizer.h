// The tokenizer that all files become: added tokens, a normaliser, a pre-tokenizer, merges, and a
// decoder, each by the rules of its file.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lib/text/bpe/bpe.h"
#include "lib/text/pattern/word_scanner.h"
#include "lib/text/pipeline/added_tokens.h"
#include "lib/text/pipeline/decoder.h"
#include "lib/text/pipeline/normalizer.h"
#include "lib/text/pipeline/pre_tokenizer.h"
#include "lib/text/tokenizer.h"

namespace gxp {

struct TokenizerParts {
  std::vector<AddedToken> added;
  Normalizer normalizer;
  std::vector<std::unique_ptr<PreTokenizerStep>> pre_tokenizer;
  // The pre_tokenizer cuts text into the words of these rules, and does nothing else.
  const WordRules* word_rules = nullptr;
  // Whether a step asks where a word lies in the source (PrependScheme::kFirst).
  bool asks_for_source = false;
  BpeModel model;
  DecoderRules decoder;
  VocabularyIds ids;  // of all tokens, by their text in the file
  std::vector<int32_t> prefix, suffix;
  std::string digest;
};

std::shared_ptr<const Tokenizer> make_bpe_tokenizer(TokenizerParts parts);

}  // namespace gxp
