// gxp train's options for generated text, and that text as it comes.
#pragma once

#include <string>
#include <vector>

#include "lib/config/run_config.h"
#include "lib/train/model/generation.h"

namespace CLI {
class App;
}  // namespace CLI

namespace gxp {

struct GenerationOptions {
  int count = 0;
  std::string prompt;
  std::string prompt_ids;
  Sampling sampling;
  std::vector<std::string> stops;
  std::string seed;
};

void add_generation_options(CLI::App& app, GenerationOptions& options);

// Whether a token of the run's data is a byte of text.
bool reads_bytes(const RunConfig& run);
// Of such tokens; of others, where the vocabulary has more, U+FFFD.
std::string text_of(const Tokens& tokens);

// Writes tokens to stdout as they come: as text, or separated by spaces as their ids. A character
// is written when all of its bytes are there.
//   Errors  kIo: stdout does not take it.
class TokenStream {
 public:
  explicit TokenStream(bool as_text) : as_text_(as_text) {}
  void put(int32_t token);
  // The end of the line.
  void finish();

 private:
  const bool as_text_;
  bool is_first_ = true;
  std::string pending_;  // bytes of a character that is not complete
};

// Checks the options against the run; `emit` is the caller's. kUsage: the prompt or a stop is not one
// of this model.
GenerationRequest make_generation(const GenerationOptions& options, const RunConfig& run);

}  // namespace gxp
