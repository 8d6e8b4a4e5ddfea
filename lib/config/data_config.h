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

// How text becomes tokens.
enum class Tokenizer { kAuto, kByte };
constexpr std::array<std::string_view, 2> words_of(Tokenizer) { return {"auto", "byte"}; }
// In which order rows are read.
enum class RowOrder { kSequential, kShuffled };
constexpr std::array<std::string_view, 2> words_of(RowOrder) { return {"sequential", "shuffled"}; }

struct DataConfig {
  std::vector<std::string> train;
  std::vector<std::string> valid;
  Choice<Tokenizer> tokenizer = Tokenizer::kAuto;
  int sequence = 0;  // 0: model.context
  Choice<RowOrder> order = RowOrder::kShuffled;
  Choice<ChangedData> changed = ChangedData::kRefuse;

  using S = DataConfig;
  static void schema(auto& field) {
    field.section("data", "Training and validation data.");
    field(
        "train", &S::train,
        "Training files: text, llm.c .bin shards, .npy arrays of integers, or .i32 files (rows "
        "of sequence + 1 tokens). A .npy array of one dimension is a stream of token ids; of two, "
        "(rows, sequence + 1), each row is a sample; of three, (rows, 2, sequence + 1), each row "
        "has its ids and then its labels in Hugging Face's sense, as numpy.stack([input_ids, "
        "labels], axis=1) makes them: a label is the id of the token at its own position, or -100 "
        "where that token is not to be predicted. The loss is the mean over all targets of the "
        "step that count, whatever ranks and micro-batches they are in; a step without any is an "
        "error. The kind is recognised from content and name; anything else is refused. Required "
        "for training.");
    field("valid", &S::valid, "Validation files, of the same kinds. May be empty.");
    field("tokenizer", &S::tokenizer,
          "How text becomes tokens. byte: one token per byte, whatever model.vocab_size is. "
          "auto: the same, but text is refused unless model.vocab_size is 256.");
    field("sequence", &S::sequence, "Tokens per row (sequence length). 0: model.context.",
          at_least(0));
    field("order", &S::order,
          "Order of the rows. sequential: as stored. shuffled: a permutation keyed by train.seed.");
    field("changed", &S::changed,
          "What --resume does if data.train differs from the files that the checkpoint's run has "
          "read. refuse: stop. accept: continue with the new files at the same number of samples.");
  }
};

}  // namespace gxp
