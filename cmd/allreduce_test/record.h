// gxp allreduce-test --show-record: what ranks did last, from the files that they left.
#pragma once

#include "cmd/allreduce_test/options.h"

namespace gxp {

// Prints the last operations of each rank and who came last to them; starts no ranks. Throws kIo
// or kCorrupt.
void show_record(const AllreduceOptions& options);

}  // namespace gxp
