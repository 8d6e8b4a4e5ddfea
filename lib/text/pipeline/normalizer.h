// What becomes of text before it is split into words.
#pragma once

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "lib/text/pattern/text_pattern.h"
#include "lib/text/unicode/normal_form.h"
#include "lib/text/unicode/text_view.h"

namespace gxp {

class NormalizerStep {
 public:
  virtual ~NormalizerStep() = default;
  // Appends what the text becomes.
  virtual void apply(TextView text, MatchMemory& memory, TextBuilder& out) const = 0;
};

std::unique_ptr<NormalizerStep> make_normal_form(NormalForm form);
std::unique_ptr<NormalizerStep> make_lower_case();
// Before a text that is not empty.
std::unique_ptr<NormalizerStep> make_prepend(std::string text);
// Each occurrence of `wanted`, which is not empty, from the left.
std::unique_ptr<NormalizerStep> make_replace_text(std::string wanted, std::string content);
std::unique_ptr<NormalizerStep> make_replace_pattern(std::unique_ptr<TextPattern> pattern,
                                                     std::string content);
// White space at the ends.
std::unique_ptr<NormalizerStep> make_strip(bool left, bool right);
std::unique_ptr<NormalizerStep> make_strip_accents();

struct NormalizerMemory {
  std::array<TextBuilder, 2> texts;
  MatchMemory match;
};

// Steps in order.
class Normalizer {
 public:
  explicit Normalizer(std::vector<std::unique_ptr<NormalizerStep>> steps = {})
      : steps_(std::move(steps)) {}
  [[nodiscard]] bool empty() const { return steps_.empty(); }
  // The result is in the memory, or is the text itself. `follows`: it says where its bytes come from.
  TextView apply(TextView text, bool follows, NormalizerMemory& memory) const;

 private:
  std::vector<std::unique_ptr<NormalizerStep>> steps_;
};

}  // namespace gxp
