#include "lib/text/pipeline/normalizer.h"

#include "lib/base/error.h"
#include "lib/text/unicode/char_class.h"
#include "lib/text/unicode/characters.h"

namespace gxp {
namespace {

bool has_class(std::string_view text, size_t at, uint16_t bits) {
  return (CharClasses::table().of(character_at(text, at).code) & bits) != 0;
}

class FormStep final : public NormalizerStep {
 public:
  explicit FormStep(NormalForm form) : form_(form) {}
  void apply(TextView text, MatchMemory&, TextBuilder& out) const override {
    append_normal_form(form_, text, out);
  }

 private:
  NormalForm form_;
};

class LowerCaseStep final : public NormalizerStep {
 public:
  void apply(TextView text, MatchMemory&, TextBuilder& out) const override {
    append_lower_case(text, out);
  }
};

class PrependStep final : public NormalizerStep {
 public:
  explicit PrependStep(std::string text) : text_(std::move(text)) {}
  void apply(TextView text, MatchMemory&, TextBuilder& out) const override {
    if (text.empty()) return;
    out.append(text_, {text.source_begin(), text.source_begin()});
    out.append(text);
  }

 private:
  std::string text_;
};

// What is put in place of a text that ends at `end` begins where the last of its characters does, as in the
// library: Metaspace asks whether a word is the text's first.
void replace(TextView text, size_t end, std::string_view content, TextBuilder& out) {
  out.append(content, text.source(character_before(text.text, end), end));
}

class ReplaceTextStep final : public NormalizerStep {
 public:
  ReplaceTextStep(std::string wanted, std::string content)
      : wanted_(std::move(wanted)), content_(std::move(content)) {}
  void apply(TextView text, MatchMemory&, TextBuilder& out) const override {
    size_t done = 0;
    for (size_t at = text.text.find(wanted_); at != text.text.npos;
         at = text.text.find(wanted_, done)) {
      out.append(text.part(done, at));
      done = at + wanted_.size();
      replace(text, done, content_, out);
    }
    out.append(text.part(done, text.size()));
  }

 private:
  std::string wanted_, content_;
};

class ReplacePatternStep final : public NormalizerStep {
 public:
  ReplacePatternStep(std::unique_ptr<TextPattern> pattern, std::string content)
      : pattern_(std::move(pattern)), content_(std::move(content)) {}
  void apply(TextView text, MatchMemory& memory, TextBuilder& out) const override {
    std::vector<TextSegment> segments;
    pattern_->cut(text.text, memory, segments);
    for (const TextSegment& segment : segments) {
      const TextView part = text.part(segment.begin, segment.end);
      if (!segment.is_match) {
        out.append(part);
      } else {
        replace(text, segment.end, content_, out);
      }
    }
  }

 private:
  std::unique_ptr<TextPattern> pattern_;
  std::string content_;
};

class StripStep final : public NormalizerStep {
 public:
  StripStep(bool left, bool right) : left_(left), right_(right) {}
  void apply(TextView text, MatchMemory&, TextBuilder& out) const override {
    size_t begin = 0, end = text.size();
    while (left_ && begin < end && has_class(text.text, begin, kSpace))
      begin += character_at(text.text, begin).length;
    while (right_ && begin < end && has_class(text.text, character_before(text.text, end), kSpace))
      end = character_before(text.text, end);
    out.append(text.part(begin, end));
  }

 private:
  bool left_, right_;
};

class StripAccentsStep final : public NormalizerStep {
 public:
  void apply(TextView text, MatchMemory&, TextBuilder& out) const override {
    for (size_t at = 0; at < text.size();) {
      const Character character = character_at(text.text, at);
      const size_t end = at + character.length;
      if ((CharClasses::table().of(character.code) & kAccent) == 0) out.append(text.part(at, end));
      at = end;
    }
  }
};

}  // namespace

std::unique_ptr<NormalizerStep> make_normal_form(NormalForm form) {
  return std::make_unique<FormStep>(form);
}
std::unique_ptr<NormalizerStep> make_lower_case() { return std::make_unique<LowerCaseStep>(); }
std::unique_ptr<NormalizerStep> make_prepend(std::string text) {
  return std::make_unique<PrependStep>(std::move(text));
}
std::unique_ptr<NormalizerStep> make_replace_text(std::string wanted, std::string content) {
  return std::make_unique<ReplaceTextStep>(std::move(wanted), std::move(content));
}
std::unique_ptr<NormalizerStep> make_replace_pattern(std::unique_ptr<TextPattern> pattern,
                                                     std::string content) {
  return std::make_unique<ReplacePatternStep>(std::move(pattern), std::move(content));
}
std::unique_ptr<NormalizerStep> make_strip(bool left, bool right) {
  return std::make_unique<StripStep>(left, right);
}
std::unique_ptr<NormalizerStep> make_strip_accents() {
  return std::make_unique<StripAccentsStep>();
}

TextView Normalizer::apply(TextView text, bool follows, NormalizerMemory& memory) const {
  // Normal forms make up to 18 bytes of one. Steps that double a text would fill the memory.
  constexpr size_t kMostGrowth = 64, kAlwaysAllowed = size_t{1} << 20;
  const size_t bytes = text.size(), most = kAlwaysAllowed + kMostGrowth * bytes;
  size_t which = 0;
  for (const auto& step : steps_) {
    TextBuilder& out = memory.texts[which];
    out.clear(follows);
    step->apply(text, memory.match, out);
    text = out.view();
    if (text.size() > most)
      fail(ErrorKind::kConfig, "normalize a text: its {} bytes have become {}; gxp allows {}",
           bytes, text.size(), most);
    which = 1 - which;
  }
  return text;
}

}  // namespace gxp
