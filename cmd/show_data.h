// gxp train --show-data: documents as the model gets them.
#pragma once

#include <cstdint>

#include "lib/config/run_config.h"
#include "lib/report/report.h"

namespace gxp {

// Prints the first `count` documents of data.train, in the order of the files: in JSON one object a
// line, {file, kind, document, text, ids, trained}, without what separates documents in a row. In
// text, what is not trained is dim on a terminal. `has_model`: the run says how
// many tokens there are. Errors: those of the files, of the tokenizer and
// of the chat template; kUsage: a format that has no such output.
void show_data(RunConfig run, bool has_model, uint64_t count, Format format);

}  // namespace gxp
