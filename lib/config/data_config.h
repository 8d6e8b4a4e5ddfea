// What a user can set about the data: the section [data] of run_config.h.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "lib/base/choice.h"
#include "lib/base/schema.h"

namespace gxp {

// What --resume does where the files of data.train have changed.
enum class ChangedData { kRefuse, kAccept };
constexpr std::array<std::string_view, 2> words_of(ChangedData) { return {"refuse", "accept"}; }

// Settings of data.tokenizer that are no path.
inline constexpr std::string_view kAutoTokenizer = "auto";
inline constexpr std::string_view kByteTokenizer = "byte";
// data.end_token: documents end in no token.
inline constexpr std::string_view kNoEndToken = "none";
// What files are whose bytes do not tell it.
enum class DataFormat { kAuto, kText, kNanoGpt };
constexpr std::array<std::string_view, 3> words_of(DataFormat) {
  return {"auto", "text", "nanogpt"};
}
// In which order rows are read.
enum class RowOrder { kSequential, kShuffled };
constexpr std::array<std::string_view, 2> words_of(RowOrder) { return {"sequential", "shuffled"}; }

// Whether rows hold documents that are kept apart.
//   kUnknown   a file is not here. Plans count the more memory of both
enum class RowDocuments { kNotApart, kApart, kUnknown };
constexpr std::array<std::string_view, 3> words_of(RowDocuments) {
  return {"not kept apart", "kept apart", "unknown, counted as kept apart"};
}

struct DataConfig {
  std::vector<std::string> train;
  std::vector<double> weights;  // of the entries of train; none: files are read as they follow
  std::vector<std::string> valid;
  double validation_split = 0;
  Choice<DataFormat> format = DataFormat::kAuto;
  std::string field;  // "": the text or the chat of a record, whichever it has
  std::string document_separator;
  std::string tokenizer{kAutoTokenizer};
  std::string end_token;  // "": the tokenizer's end of text; of token ids: none
  std::string chat_template = "default";
  std::string cache;  // "": beside the run
  int sequence = 0;   // 0: model.context
  Choice<RowOrder> order = RowOrder::kShuffled;
  bool cross_documents = false;
  Choice<ChangedData> changed = ChangedData::kRefuse;
  // Not a setting. A run finds it in its files before it is planned (lib/data/data_files.h).
  Choice<RowDocuments> documents = RowDocuments::kNotApart;

  using S = DataConfig;
  static void schema(auto& field) {
    field.section("data",
                  "Training and validation data. Each of format, field, document_separator, "
                  "end_token and chat_template is refused if it is set and no file of data.train "
                  "and data.valid is of a kind that it is about.");
    field("train", &S::train,
          "Training files, directories (all their files but hidden ones), or patterns with *, ? "
          "and []: text or JSON (see data.field), also compressed by gzip or zstd; llm.c .bin "
          "shards; Megatron's .bin with its .idx beside it, of which either name is given; .npy "
          "arrays of integers; or .i32 files (rows of sequence + 1 tokens). A .npy array of one "
          "dimension is a stream of token ids; of two, (rows, sequence + 1), each row is a sample; "
          "of three, (rows, 2, sequence + 1), each row has its ids and then its labels in Hugging "
          "Face's sense, as numpy.stack([input_ids, labels], axis=1) makes them: a label is the id "
          "of the token at its own position, or -100 where that token is not to be predicted. The "
          "loss is the mean over all targets of the step that count, whatever ranks and "
          "micro-batches they are in; a step without any is an error. The kind is recognised from "
          "content and name; anything else is refused. Required for training.");
    field("weights", &S::weights,
          "Share of the samples that each entry of data.train gives, in proportion to their sum: "
          "train = [\"web/*.jsonl\", \"code\"] and weights = [0.7, 0.3] take seven of ten samples "
          "from the first. The mixture is exact at every position, the same at any world size and "
          "after --resume, and each entry has its own epochs: a small one is read again while a "
          "large one goes on. Empty: all files follow each other, and each sample is read once an "
          "epoch.",
          positive);
    field("valid", &S::valid, "Validation files, of the same kinds. May be empty.");
    field("validation_split", &S::validation_split,
          "Fraction of the documents of data.train that are kept out of training and used for "
          "validation, if data.valid is empty: 0.01 takes one of each 100 that follow each other. "
          "Which ones depends on their numbers in the file alone, not on train.seed. 0: none.",
          at_least_and_below(0, 1));
    field("format", &S::format,
          "What files are whose contents do not tell it. auto: they are refused. nanogpt: .bin "
          "files that no header identifies are uint16 token ids, as nanoGPT's prepare.py writes "
          "them; other files are as in auto. text: every text is plain text, whatever its name is "
          "and even if it looks like JSON.");
    field(
        "field", &S::field,
        "Field of JSON lines, or of the elements of one JSON array, that holds the text: a name, "
        "or a path through objects such as \"doc.body.text\". \"messages\", \"conversations\", "
        "\"prompt+completion\" and \"instruction+output\" are chats. \"\": the field text, or one "
        "of these chats, if the first record has only one of them. A record without the field is "
        "an error.");
    field("document_separator", &S::document_separator,
          "Text that separates the documents of a plain text file, such as \"<|endoftext|>\". It "
          "belongs to none of them. \"\": each file is one document.");
    field(
        "tokenizer", &S::tokenizer,
        "How text becomes tokens: a directory with a tokenizer as Hugging Face has it "
        "(tokenizer.json, vocab.json with merges.txt, tokenizer.model or a file of tiktoken), or "
        "such a file. byte: one token per byte, whatever model.vocab_size is. auto: the tokenizer "
        "in the directory of model.init or model.config; if there is none, as byte, but text is "
        "refused unless model.vocab_size is 256. Text is tokenized once, into data.cache; plain "
        "text is read as it is where tokens are bytes. Files of token ids need none, but "
        "--show-data and --generate write their text with it.");
    field(
        "end_token", &S::end_token,
        "Token behind each document of text, by its text in the tokenizer. \"\": <|endoftext|> or "
        "<|end_of_text|> if the tokenizer has it, else its eos_token. none: no token. With files "
        "of token ids: the token, or its id, that ends a document in them; \"\": they are one "
        "document each, or those that their index records.");
    field(
        "chat_template", &S::chat_template,
        "Name of the chat template, where the tokenizer's directory has several. Chats become the "
        "text that it writes. What is trained is what its {% generation %} tags enclose; without "
        "tags, each of the assistant's messages from the end of the generation prompt on, with "
        "what the template puts behind it. A chat of which this cannot be told is refused.");
    field("cache", &S::cache,
          "Directory of the tokens of text files. A file there is used again for the same text, "
          "tokenizer and settings. \"\": tokens beside checkpoint.dir; without "
          "that, gxp/tokens in $XDG_CACHE_HOME or ~/.cache.");
    field("sequence", &S::sequence, "Tokens per row (sequence length). 0: model.context.",
          at_least(0));
    field("order", &S::order,
          "Order of the rows. sequential: as stored. shuffled: a permutation keyed by train.seed.");
    field("cross_documents", &S::cross_documents,
          "How a row is trained that holds several documents, in files that say where each begins. "
          "false: each document as in a row of its own: attention does not cross documents, "
          "positions count from the document's first token, and that token is not a target. true: "
          "the row as one text.");
    field("changed", &S::changed,
          "What --resume does if data.train differs from the files that the checkpoint's run has "
          "read. refuse: stop. accept: continue with the new files at the same number of samples.");
  }
};

}  // namespace gxp
