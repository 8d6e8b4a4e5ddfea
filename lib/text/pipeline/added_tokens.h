// Tokens that are found in text before it is split.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace gxp {

struct AddedToken {
  std::string content;
  int32_t id = 0;
  bool is_single_word = false;  // counts only between characters that are none of a word's
  bool strips_left = false;     // takes the white space at its left
  bool strips_right = false;
  bool is_normalized = true;  // is searched for in normalised text, itself normalised
  bool is_special = false;
};

// A part of a text: bytes [begin, end), a token or what lies between.
struct TextPiece {
  size_t begin = 0, end = 0;
  std::optional<int32_t> id;
};

class AddedTokens {
 public:
  // Of two with one content the first counts.
  explicit AddedTokens(std::vector<AddedToken> tokens);
  // Appends the tokens in the text, from the left, the longest of those that begin at one place, and
  // what lies between them. Pieces may overlap: white space that a token takes may begin the next. A
  // token is none whose white space at its left, which another one has taken, is all that it is.
  // Cost: linear, times the longest content where tokens look alike.
  void cut(std::string_view text, std::vector<TextPiece>& out) const;
  [[nodiscard]] bool empty() const { return tokens_.empty(); }

 private:
  struct Found {
    size_t end = 0;
    const AddedToken* token = nullptr;  // null: none begins here
  };
  [[nodiscard]] Found find(std::string_view text, size_t at) const;

  std::vector<AddedToken> tokens_;
  // A trie: from a node, 0 for the root, by a byte to the next one.
  std::unordered_map<uint64_t, uint32_t> next_;
  std::vector<int32_t> token_of_;  // of each node: the token that ends there, or -1
  std::array<bool, 256> begins_{};
};

}  // namespace gxp
