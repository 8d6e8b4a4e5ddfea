#include "cmd/generation_options.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <climits>
#include <optional>

#include "cmd/options.h"
#include "lib/base/error.h"
#include "lib/base/text/utf8.h"
#include "lib/data/corpus/document_encoder.h"
#include "lib/report/report.h"
#include "lib/text/chat/chat_template.h"

namespace gxp {
namespace {

template <class Number>
std::optional<Number> parse(std::string_view text) {
  Number number{};
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && rest == text.data() + text.size() ? std::optional(number)
                                                                   : std::nullopt;
}

int32_t parse_id(const std::string& option, std::string_view text, const RunConfig& run) {
  const auto id = parse<int32_t>(text);
  if (!id || *id < 0 || *id >= run.model.vocab_size)
    fail(ErrorKind::kUsage, "{}: '{}' is not a token id from 0 to {} (model.vocab_size - 1)",
         option, text, run.model.vocab_size - 1);
  return *id;
}

// Separated by commas or spaces.
Tokens parse_ids(const std::string& option, const std::string& text, const RunConfig& run) {
  Tokens tokens;
  for (size_t at = text.find_first_not_of(", "); at < text.size();) {
    const size_t end = std::min(text.find_first_of(", ", at), text.size());
    tokens.push_back(parse_id(option, std::string_view(text).substr(at, end - at), run));
    at = text.find_first_not_of(", ", end);
  }
  return tokens;
}

// `text` by the tokenizer of the run.
Tokens encode(const std::string& option, const GenerationOptions& options, std::string_view text,
              const RunConfig& run) {
  Tokens tokens;
  options.tokenizer->encode(text, tokens);
  for (const int32_t token : tokens)
    if (token >= run.model.vocab_size)
      fail(ErrorKind::kUsage, "{}: it has the token {}, but model.vocab_size is {}", option, token,
           run.model.vocab_size);
  return tokens;
}

// With what the tokenizer puts before a text; a chat's template has that itself.
Tokens prompt_text(const GenerationOptions& options, const RunConfig& run) {
  if (options.is_chat)
    return encode("--prompt", options, chat_template_of(run).prompt(options.prompt), run);
  Tokens prompt = options.tokenizer->prefix();
  const Tokens text = encode("--prompt", options, options.prompt, run);
  prompt.insert(prompt.end(), text.begin(), text.end());
  return prompt;
}

Tokens prompt_of(const GenerationOptions& options, const RunConfig& run) {
  const bool is_ids = !options.prompt_ids.empty();
  Tokens prompt =
      is_ids ? parse_ids("--prompt-ids", options.prompt_ids, run) : prompt_text(options, run);
  const char* const option = is_ids ? "--prompt-ids" : "--prompt";
  if (prompt.empty()) fail(ErrorKind::kUsage, "{}: must not be empty", option);
  if (prompt.size() > size_t(run.model.context))
    fail(ErrorKind::kUsage, "{}: has {} tokens, more than model.context, {}", option, prompt.size(),
         run.model.context);
  return prompt;
}

bool is_id(const std::string& stop) { return parse<int64_t>(stop).has_value(); }

// If the prompt or a stop is text.
void set_tokenizer(GenerationOptions& options, const RunConfig& run) {
  const bool has_text_prompt = options.prompt_ids.empty();
  if (!has_text_prompt && std::ranges::all_of(options.stops, is_id)) return;
  if (!has_tokenizer(run))
    fail(ErrorKind::kUsage,
         "{}: gxp has no tokenizer for a vocabulary of {}; give token ids{}, or set data.tokenizer "
         "to the model's tokenizer, or to \"byte\" if its tokens 0 to 255 are bytes",
         has_text_prompt ? "--prompt" : "--stop", run.model.vocab_size,
         has_text_prompt ? " with --prompt-ids" : "");
  options.tokenizer = tokenizer_of(run);
}

Tokens stop_of(const GenerationOptions& options, const std::string& stop, const RunConfig& run) {
  return is_id(stop) ? Tokens{parse_id("--stop", stop, run)} : encode("--stop", options, stop, run);
}

// Up to the last character's first byte, if its last byte may still come.
size_t complete_bytes(std::string_view text) {
  size_t begin = text.size();
  while (begin > 0 && text.size() - begin < 3 && continues_utf8(text[begin - 1])) --begin;
  if (begin == 0) return text.size();
  const auto first = static_cast<unsigned char>(text[--begin]);
  const size_t length = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : first >= 0xc2 ? 2 : 1;
  return text.size() - begin < length ? begin : text.size();
}

void add_sampling_options(CLI::App& app, Sampling& sampling, CLI::Option* generate) {
  add_number_option(app, "--temperature", sampling.temperature, 0, 1e6,
                    "Divisor of the logits. Lower is more predictable; 0: always the likeliest "
                    "token")
      ->type_name("T")
      ->needs(generate);
  add_number_option(app, "--top-k", sampling.top_k, 0, INT_MAX,
                    "Draw from the K likeliest tokens only; 0: from all")
      ->type_name("K")
      ->needs(generate);
  add_number_option(app, "--top-p", sampling.top_p, 0, 1,
                    "Then only from the fewest that have probability P together")
      ->type_name("P")
      ->needs(generate);
  add_number_option(app, "--min-p", sampling.min_p, 0, 1,
                    "Then only from those with at least P times the largest probability")
      ->type_name("P")
      ->needs(generate);
}

}  // namespace

void TokenStream::put(int32_t token) {
  if (!decoder_) {
    print_now(fmt::format("{}{}", is_first_ ? "" : " ", token));
    is_first_ = false;
    return;
  }
  pending_ += decoder_->put(token);
  const size_t complete = complete_bytes(pending_);
  print_now(pending_.substr(0, complete));
  pending_.erase(0, complete);
}

void TokenStream::finish() { print_now(pending_ + "\n"); }

GenerationRequest make_generation(GenerationOptions& options, const RunConfig& run) {
  if (options.count == 0) return {};
  set_tokenizer(options, run);
  GenerationRequest request{.prompt = prompt_of(options, run),
                            .count = options.count,
                            .sampling = options.sampling,
                            .seed = run.train.seed};
  if (options.is_chat && options.stops.empty())
    request.stops.push_back({end_of_turn(run, *options.tokenizer)});
  if (!options.seed.empty()) request.seed = *parse<uint64_t>(options.seed);
  for (const std::string& stop : options.stops) {
    request.stops.push_back(stop_of(options, stop, run));
    if (request.stops.back().empty()) fail(ErrorKind::kUsage, "--stop: must not be empty");
  }
  return request;
}

void add_generation_options(CLI::App& app, GenerationOptions& options) {
  CLI::Option* generate =
      add_number_option(app, "--generate", options.count, 0, INT_MAX,
                        "Generate N tokens after training, alone without data.train");
  add_under(app, kGenerating, [&] {
    options.prompt = "\n";
    app.add_option("--prompt", options.prompt, "Text that --generate continues")
        ->type_name("TEXT")
        ->default_str("a line feed")
        ->needs(generate);
    app.add_flag("--chat", options.is_chat,
                 "Take the prompt as a user's message. It is written as the model's chat template "
                 "has it; "
                 "what ends its answer is the default of --stop")
        ->needs(generate)
        ->needs("--prompt");
    app.add_option("--prompt-ids", options.prompt_ids,
                   "Token ids to continue, such as 1,2,3. Ids are printed, too")
        ->type_name("IDS")
        ->needs(generate)
        ->excludes("--prompt");
    add_sampling_options(app, options.sampling, generate);
    app.add_option("--stop", options.stops,
                   "Token ids or texts, any of which ends generation and is printed last")
        ->type_name("TOKEN...")
        ->needs(generate);
    app.add_option("--seed", options.seed, "Seed of the draws of --generate")
        ->type_name("N")
        ->check([](const std::string& text) {
          return parse<uint64_t>(text) ? "" : fmt::format("must be a whole number, is '{}'", text);
        })
        ->default_str("train.seed")
        ->needs(generate);
  });
}

}  // namespace gxp
