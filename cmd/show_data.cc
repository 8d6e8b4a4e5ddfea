#include "cmd/show_data.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "lib/base/error.h"
#include "lib/data/corpus/document_encoder.h"
#include "lib/data/dataset.h"
#include "lib/data/documents/open_documents.h"
#include "lib/data/files/path_list.h"
#include "lib/report/report.h"

namespace gxp {
namespace {

struct ShownDocument {
  std::string text;
  std::vector<int32_t> ids;
  std::vector<uint8_t> trained;  // for each id
};

// Of token ids; their text is known where the run has a tokenizer.
ShownDocument show_tokens(const DocumentView& document, const Tokenizer* tokenizer) {
  ShownDocument shown{
      .text = "", .ids{document.tokens.begin(), document.tokens.end()}, .trained = {}};
  if (tokenizer != nullptr) shown.text = tokenizer->decode(shown.ids);
  for (const int32_t label : document.labels) shown.trained.push_back(label == kNoLabel ? 0 : 1);
  return shown;
}

ShownDocument show_text(const DocumentReader& reader, const DocumentView& document,
                        const DocumentEncoder& encoder) {
  EncodedDocument encoded =
      encoder.encode(reader.form(), document, "read " + reader.place_of(document));
  return {
      reader.form() == DocumentForm::kText ? std::string(document.text) : std::move(encoded.text),
      std::move(encoded.ids), std::move(encoded.trained)};
}

std::string as_json(const DocumentReader& reader, const DocumentView& document,
                    const ShownDocument& shown) {
  const nlohmann::ordered_json line = {
      {"file", reader.path()}, {"kind", reader.kind()}, {"document", document.number},
      {"text", shown.text},    {"ids", shown.ids},      {"trained", shown.trained}};
  return line.dump(-1, ' ', true, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

// The text, whose trained tokens are coloured on a terminal; or the ids.
void print_text(const DocumentReader& reader, const DocumentView& document,
                const ShownDocument& shown, const Tokenizer* tokenizer) {
  const auto trained = std::ranges::count(shown.trained, uint8_t{1});
  print_now(fmt::format("{}: {}, {} tokens, {} trained\n", reader.place_of(document), reader.kind(),
                        shown.ids.size(), trained));
  if (tokenizer == nullptr) return print_now(fmt::format("{}\n", fmt::join(shown.ids, " ")));
  const auto decoder = tokenizer->decoder();
  for (size_t i = 0; i < shown.ids.size();) {
    const uint8_t kind = shown.trained[i];
    std::string run;
    for (; i < shown.ids.size() && shown.trained[i] == kind; ++i) run += decoder->put(shown.ids[i]);
    kind != 0 ? print_green(run) : print_now(run);
  }
  print_now("\n");
}

}  // namespace

void show_data(RunConfig run, bool has_model, uint64_t count, Format format) {
  if (!has_model && !tokenizer_path(run).empty()) run.model.vocab_size = 0;  // of any size
  if (format == Format::kCsv)
    fail(ErrorKind::kUsage, "--show-data: documents are shown as text or json, not as csv");
  RunEncoder encoder(run);
  const DocumentOptions options = document_options(run, encoder.end_of_stream());
  for (const std::string& entry : run.data.train) {
    for (const std::string& path : expand_path(entry, "data.train")) {
      const auto reader = open_documents(path, options);
      const bool is_tokens = reader->form() == DocumentForm::kTokens;
      const Tokenizer* const tokenizer =
          !is_tokens || has_tokenizer(run) ? &encoder.get().tokenizer() : nullptr;
      while (count > 0) {
        const auto document = reader->next();
        if (!document) break;
        ShownDocument shown = is_tokens ? show_tokens(*document, tokenizer)
                                        : show_text(*reader, *document, encoder.get());
        if (shown.trained.empty()) shown.trained.assign(shown.ids.size(), 1);
        if (format == Format::kJson)
          print_now(as_json(*reader, *document, shown));
        else
          print_text(*reader, *document, shown, tokenizer);
        --count;
      }
    }
  }
}

}  // namespace gxp
