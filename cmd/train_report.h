// How `gxp train` ends on rank 0.
#pragma once

#include "lib/report/report.h"
#include "lib/train/run.h"

namespace gxp {

// Prints the run's result. Errors: kIo: the metrics are not complete, although the run is trained
// and saved; or stdout does not take the result, unless a signal has stopped the run: then that is
// a warning, since Ctrl-C ends a reader, too, and that the run has saved counts more.
void print_result(const RunSummary& summary, int world_size, Format format);

}  // namespace gxp
