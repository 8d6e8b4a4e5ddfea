// gxp train's options for generated text, and that text as it comes.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "lib/config/run_config.h"
#include "lib/text/tokenizer.h"
#include "lib/train/model/generation.h"

namespace CLI {
class App;
}  // namespace CLI

namespace gxp {

struct GenerationOptions {
  int count = 0;
  std::string prompt;
  std::string prompt_ids;
  bool is_chat = false;
  Sampling sampling;
  std::vector<std::string> stops;
  std::string seed;
  std::shared_ptr<const Tokenizer> tokenizer = nullptr;  // if the prompt or a stop is text
};

void add_generation_options(CLI::App& app, GenerationOptions& options);

// Writes tokens to stdout as they come: as text, or separated by spaces as their ids. A character
// is written when all of its bytes are there.
//   Errors  kIo: stdout does not take it.
class TokenStream {
 public:
  // Without a decoder: ids.
  explicit TokenStream(std::unique_ptr<TokenDecoder> decoder) : decoder_(std::move(decoder)) {}
  void put(int32_t token);
  // The end of the line.
  void finish();

 private:
  const std::unique_ptr<TokenDecoder> decoder_;
  bool is_first_ = true;
  std::string pending_;  // bytes of a character that is not complete
};

// Checks the options against the run, and opens its tokenizer where the prompt or a stop is text;
// `emit` is the caller's. kUsage: the prompt or a stop is not one of this model. Errors of
// tokenizer_of(), too.
GenerationRequest make_generation(GenerationOptions& options, const RunConfig& run);

}  // namespace gxp
