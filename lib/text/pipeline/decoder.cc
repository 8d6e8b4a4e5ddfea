#include "lib/text/pipeline/decoder.h"

#include <array>
#include <utility>

namespace gxp {
namespace {

std::string replaced(std::string text, std::string_view wanted, std::string_view content) {
  for (size_t at = text.find(wanted); !wanted.empty() && at != text.npos;
       at = text.find(wanted, at + content.size()))
    text.replace(at, wanted.size(), content);
  return text;
}

// The replacements of the library's WordPiece decoder, in its order.
std::string cleaned_up(std::string text) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 11> kReplacements = {{
      {" .", "."},
      {" ?", "?"},
      {" !", "!"},
      {" ,", ","},
      {" ' ", "'"},
      {" n't", "n't"},
      {" 'm", "'m"},
      {" do not", " don't"},
      {" 's", "'s"},
      {" 've", "'ve"},
      {" 're", "'re"},
  }};
  for (const auto& [wanted, content] : kReplacements)
    text = replaced(std::move(text), wanted, content);
  return text;
}

class RuledDecoder final : public TokenDecoder {
 public:
  RuledDecoder(const DecoderRules& rules, bool skip_special)
      : rules_(rules), skip_special_(skip_special), leading_left_(rules.leading_count) {}

  std::string put(int32_t id) override {
    if (id < 0 || size_t(id) >= rules_.exists.size() || !rules_.exists[size_t(id)] ||
        (skip_special_ && rules_.is_special[size_t(id)]))
      return "";
    std::string piece = joined_piece(rules_.pieces[size_t(id)]);
    is_first_ = false;
    return without_leading(std::move(piece));
  }

 private:
  std::string joined_piece(std::string piece) {
    switch (rules_.joint) {
      case TokenJoint::kNothing:
        return piece;
      case TokenJoint::kSpace:
        return is_first_ ? piece : " " + piece;
      case TokenJoint::kMetaspace:
        return replaced(std::move(piece), rules_.mark, is_first_ ? "" : " ");
      case TokenJoint::kWordPiece:
        if (!is_first_)
          piece = piece.starts_with(rules_.mark) ? piece.substr(rules_.mark.size()) : " " + piece;
        return rules_.cleans_up ? cleaned_up(std::move(piece)) : piece;
      case TokenJoint::kSuffix:
        return suffixed(std::move(piece));
    }
    return piece;
  }

  // The mark of the last token is nothing: each waits for the next token.
  std::string suffixed(std::string piece) {
    if (std::exchange(has_space_waiting_, false)) piece.insert(0, " ");
    if (piece.ends_with(rules_.mark)) {
      piece.resize(piece.size() - rules_.mark.size());
      has_space_waiting_ = true;
    }
    return piece;
  }

  std::string without_leading(std::string piece) {
    while (leading_left_ > 0 && !piece.empty()) {
      if (!piece.starts_with(rules_.leading)) {
        leading_left_ = 0;
      } else {
        piece.erase(0, rules_.leading.size());
        --leading_left_;
      }
    }
    return piece;
  }

  const DecoderRules& rules_;
  bool skip_special_;
  int leading_left_;
  bool is_first_ = true;
  bool has_space_waiting_ = false;
};

}  // namespace

std::unique_ptr<TokenDecoder> make_token_decoder(const DecoderRules& rules, bool skip_special) {
  return std::make_unique<RuledDecoder>(rules, skip_special);
}

}  // namespace gxp
