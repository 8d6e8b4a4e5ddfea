// "normalizer" of tokenizer.json.
#include "lib/text/files/tokenizer_json.h"

namespace gxp {
namespace {

std::unique_ptr<NormalizerStep> read_replace(const Json& step, const std::string& where) {
  const PatternJson pattern = read_pattern(step, where);
  std::string content = to_text(member(step, "content", where), where);
  if (!pattern.is_regex) return make_replace_text(pattern.text, std::move(content));
  auto compiled = std::make_unique<TextPattern>(pattern.text, PatternDialect::kOniguruma, where);
  // The tokenizers library inserts the content twice where a text begins with such a match.
  if (compiled->may_match_empty())
    fail(ErrorKind::kConfig, "{}: its normalizer replaces the pattern {}, which may match nothing",
         where, pattern.text);
  return make_replace_pattern(std::move(compiled), std::move(content));
}

std::unique_ptr<NormalizerStep> read_step(const Json& step, const std::string& where) {
  const std::string type = type_in(step, where);
  if (type == "NFC") return make_normal_form(NormalForm::kNfc);
  if (type == "NFD") return make_normal_form(NormalForm::kNfd);
  if (type == "NFKC") return make_normal_form(NormalForm::kNfkc);
  if (type == "NFKD") return make_normal_form(NormalForm::kNfkd);
  if (type == "Lowercase") return make_lower_case();
  if (type == "StripAccents") return make_strip_accents();
  if (type == "Prepend") return make_prepend(to_text(member(step, "prepend", where), where));
  if (type == "Replace") return read_replace(step, where);
  if (type == "Strip")
    return make_strip(flag(step, "strip_left", where), flag(step, "strip_right", where));
  refuse_text(where, fmt::format("its normalizer is {}", type));
}

}  // namespace

std::vector<std::unique_ptr<NormalizerStep>> read_normalizer(const Json& block,
                                                             const std::string& where) {
  std::vector<std::unique_ptr<NormalizerStep>> steps;
  for (const Json* step : steps_of(block, "normalizers", where))
    steps.push_back(read_step(*step, where));
  return steps;
}

}  // namespace gxp
