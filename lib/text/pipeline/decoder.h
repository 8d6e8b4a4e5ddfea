// Token ids back to bytes.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "lib/text/tokenizer.h"

namespace gxp {

// What neighbouring tokens are joined by.
enum class TokenJoint {
  kNothing,
  kSpace,      // one between any two
  kWordPiece,  // one before each token but the first, unless that begins with `mark`, which goes
  kSuffix,     // a `mark` at a token's end is a space, unless it ends the text
  kMetaspace,  // `mark` is a space, and nothing in the first token
};

struct DecoderRules {
  TokenJoint joint = TokenJoint::kNothing;
  std::string mark;
  bool cleans_up = false;  // kWordPiece: takes out spaces before English punctuation
  // From the beginning of the whole text that many of these are dropped.
  std::string leading;
  int leading_count = 0;
  // By id: what each token is before it is joined; empty where there is none.
  std::vector<std::string> pieces;
  std::vector<bool> exists;
  std::vector<bool> is_special;
};

// `rules` outlives it.
std::unique_ptr<TokenDecoder> make_token_decoder(const DecoderRules& rules, bool skip_special);

}  // namespace gxp
