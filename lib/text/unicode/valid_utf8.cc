#include "lib/text/unicode/valid_utf8.h"

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "lib/base/text/utf8.h"

namespace gxp {
namespace {

// Bytes at the beginning that are ASCII, in steps of eight.
size_t ascii_prefix(std::string_view text) {
  size_t at = 0;
  for (uint64_t eight = 0; at + sizeof eight <= text.size(); at += sizeof eight) {
    std::memcpy(&eight, text.data() + at, sizeof eight);
    if ((eight & 0x8080808080808080u) != 0) break;
  }
  return at;
}

// Where the first byte is that begins no character.
size_t valid_prefix(std::string_view text) {
  size_t at = 0;
  while (at < text.size()) {
    const size_t length = utf8_length(text.substr(at));
    if (length == 0) return at;
    at += length;
    if (length == 1) at += ascii_prefix(text.substr(at));
  }
  return at;
}

// The longest beginning of a character at the beginning of an invalid text; at least one byte.
size_t ill_formed_length(std::string_view text) {
  constexpr std::string_view kEnd = "\xbf\xbf\xbf", kOther = "\x80\x80\x80";
  for (size_t length = std::min<size_t>(3, text.size()); length > 1; --length)
    for (const std::string_view rest : {kEnd, kOther}) {
      const std::string completed = std::string(text.substr(0, length)) + std::string(rest);
      if (utf8_length(completed) > length) return length;
    }
  return 1;
}

}  // namespace

bool is_valid_utf8(std::string_view text) { return valid_prefix(text) == text.size(); }

void append_valid_utf8(std::string_view text, TextBuilder& out) {
  for (size_t at = 0; at < text.size();) {
    const size_t valid_end = at + valid_prefix(text.substr(at));
    out.append(TextView{text.substr(at, valid_end - at), {}, uint32_t(at)});
    at = valid_end;
    if (at == text.size()) return;
    const size_t length = ill_formed_length(text.substr(at));
    out.append("\xef\xbf\xbd", {uint32_t(at), uint32_t(at + length)});
    at += length;
  }
}

std::string with_valid_utf8(std::string_view text) {
  TextBuilder out;
  append_valid_utf8(text, out);
  return std::string(out.view().text);
}

}  // namespace gxp
