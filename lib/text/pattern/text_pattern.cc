#include "lib/text/pattern/text_pattern.h"

#include <array>

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include "lib/base/error.h"
#include "lib/text/unicode/characters.h"

namespace gxp {
namespace {

// A match of a word takes a few steps a character; these are for patterns that go back and forth.
#ifdef FUZZING_BUILD_MODE_UNSAFE_FOR_PRODUCTION
constexpr uint32_t kMaxSteps = 20'000;
#else
constexpr uint32_t kMaxSteps = 50'000'000;
#endif
constexpr uint32_t kMaxHeapKib = 64 * 1024;
constexpr size_t kFirstStackBytes = size_t{32} << 10, kMaxStackBytes = size_t{8} << 20;
constexpr size_t kMaxCodeBytes = size_t{16} << 20;

std::string pcre2_text(int error) {
  std::array<PCRE2_UCHAR, 256> text{};
  pcre2_get_error_message(error, text.data(), text.size());
  return reinterpret_cast<const char*>(text.data());
}

}  // namespace

struct MatchMemory::Handles {
  pcre2_match_data* data = pcre2_match_data_create(1, nullptr);
  pcre2_match_context* context = pcre2_match_context_create(nullptr);
  pcre2_jit_stack* stack = pcre2_jit_stack_create(kFirstStackBytes, kMaxStackBytes, nullptr);
  Handles() {
    pcre2_set_match_limit(context, kMaxSteps);
    pcre2_set_heap_limit(context, kMaxHeapKib);
    if (stack != nullptr) pcre2_jit_stack_assign(context, nullptr, stack);
  }
  ~Handles() {
    pcre2_match_data_free(data);
    pcre2_match_context_free(context);
    if (stack != nullptr) pcre2_jit_stack_free(stack);
  }
  Handles(const Handles&) = delete;
  Handles& operator=(const Handles&) = delete;
};

MatchMemory::MatchMemory() : handles_(std::make_unique<Handles>()) {}
MatchMemory::~MatchMemory() = default;

struct TextPattern::Code {
  pcre2_code* code = nullptr;
  ~Code() { pcre2_code_free(code); }
};

TextPattern::TextPattern(std::string_view pattern, PatternDialect dialect, const std::string& where)
    : where_(where), pattern_(pattern), code_(std::make_unique<Code>()) {
  const std::string translated = to_pcre2(pattern, dialect, where);
  const std::unique_ptr<pcre2_compile_context, decltype(&pcre2_compile_context_free)> context(
      pcre2_compile_context_create(nullptr), pcre2_compile_context_free);
  pcre2_set_newline(context.get(), PCRE2_NEWLINE_LF);
  pcre2_set_bsr(context.get(), PCRE2_BSR_UNICODE);
  int error = 0;
  size_t place = 0;
  code_->code = pcre2_compile(reinterpret_cast<PCRE2_SPTR>(translated.data()), translated.size(),
                              PCRE2_UTF | PCRE2_UCP | PCRE2_MULTILINE | PCRE2_NEVER_BACKSLASH_C,
                              &error, &place, context.get());
  if (code_->code == nullptr && error == PCRE2_ERROR_UNICODE_NOT_SUPPORTED)
    fail(ErrorKind::kUnavailable, "{}: PCRE2 was built without Unicode", where);
  size_t bytes = 0;
  if (code_->code != nullptr) pcre2_pattern_info(code_->code, PCRE2_INFO_SIZE, &bytes);
  if (code_->code == nullptr || bytes > kMaxCodeBytes)
    fail(ErrorKind::kConfig, "{}: the pattern {} cannot be compiled: {}", where, pattern,
         code_->code == nullptr ? pcre2_text(error) : "it is too large");
  // Where PCRE2 has no JIT compiler, it interprets.
  pcre2_jit_compile(code_->code, PCRE2_JIT_COMPLETE);
}

TextPattern::~TextPattern() = default;

bool TextPattern::may_match_empty() const {
  uint32_t may = 0;
  pcre2_pattern_info(code_->code, PCRE2_INFO_MATCHEMPTY, &may);
  return may != 0;
}

void TextPattern::cut(std::string_view text, MatchMemory& memory,
                      std::vector<TextSegment>& out) const {
  const MatchMemory::Handles& handles = *memory.handles_;
  size_t done = 0;               // what is in `out`
  bool is_behind_match = false;  // at `done`
  for (size_t start = 0; start <= text.size();) {
    const int result =
        pcre2_match(code_->code, reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(), start,
                    PCRE2_NO_UTF_CHECK, handles.data, handles.context);
    if (result == PCRE2_ERROR_NOMATCH) break;
    if (result < 0)
      fail(ErrorKind::kConfig,
           "{}: match the pattern {}: {}; a text of {} bytes needs more than gxp allows", where_,
           pattern_, pcre2_text(result), text.size());
    const size_t* const range = pcre2_get_ovector_pointer(handles.data);
    if (range[0] == range[1] && is_behind_match && range[0] == done) {
      start += start < text.size() ? character_at(text, start).length : 1;
      continue;
    }
    if (done < range[0]) out.push_back({done, range[0], false});
    out.push_back({range[0], range[1], true});
    start = done = range[1];
    is_behind_match = true;
  }
  if (done < text.size()) out.push_back({done, text.size(), false});
}

}  // namespace gxp
