#include "lib/text/pipeline/word_list.h"

#include "lib/base/text/utf8.h"

namespace gxp {

void restore_bytes(WordList& list) {
  constexpr std::string_view kReplacement = "\xef\xbf\xbd";
  rewrite(list, [&list, kReplacement](TextView word, TextBuilder& out) {
    size_t done = 0;
    for (size_t at = word.text.find(kReplacement); at != word.text.npos;
         at = word.text.find(kReplacement, at + kReplacement.size())) {
      const size_t end = at + kReplacement.size();
      const ByteSpan source = word.source(at, end);
      const std::string_view bytes =
          list.invalid_source.substr(source.begin, source.end - source.begin);
      if (utf8_length(bytes) != 0) continue;  // the text has that character
      out.append(word.part(done, at));
      for (uint32_t i = 0; i < bytes.size(); ++i)
        out.append(bytes.substr(i, 1), {source.begin + i, source.begin + i + 1});
      done = end;
    }
    out.append(word.part(done, word.size()));
  });
}

}  // namespace gxp
