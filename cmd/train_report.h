// The results of gxp train, as rank 0 prints them.
#pragma once

#include "lib/report/report.h"
#include "lib/text/tokenizer.h"
#include "lib/train/model_view.h"
#include "lib/train/run.h"

namespace gxp {

struct TrainPrinting {
  Format format = Format::kText;
  bool of_bytes = false;                 // the data's tokens are bytes of text
  const Tokenizer* tokenizer = nullptr;  // of generated text; null: token ids
  int world_size = 1;
};

// "gxp.train/1". What was generated is not printed again in text, where it has been already. Errors:
// kIo: the metrics are not complete, although the run is trained and saved; or stdout does not take
// the result, unless a signal has stopped the run: then that is a warning, since Ctrl-C ends a
// reader, too, and that the run has saved counts more.
void print_result(const RunSummary& summary, const TrainPrinting& how);
// "gxp.train-evaluation/1", likewise. Errors: kIo.
void print_view(const ModelView& view, const TrainPrinting& how);

}  // namespace gxp
