// trace.json: what the ranks did in some steps, in the Trace Event Format (Google, 2016), which
// ui.perfetto.dev opens: a process per rank, and in it a thread for the run and one per lane.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "lib/program/step_program.h"
#include "lib/train/trace/clock_offset.h"

namespace gxp {

class Communicator;

// Something that the run or a lane does. Slices of a lane follow each other; a slice of the run
// lies within a step or outside of all.
struct TraceSlice {
  const Op* op = nullptr;   // null: the run's
  std::string_view name{};  // only the run's; lives for ever
  int64_t step = 0;
  int64_t begin_ns = 0, end_ns = 0;  // by the rank's monotonic clock
  // Bytes that the rank has sent in a whole step, with what is for other hosts, and that part.
  uint64_t sent_bytes = 0, sent_between_hosts = 0;
};

struct RankTrace {
  std::span<const TraceSlice> slices;
  uint64_t dropped = 0;     // slices, for want of memory
  ClockOffset first, last;  // before and after the slices
};

// [collective] Rank 0 writes all ranks' slices into the file, whose earlier content goes when the
// new one is complete. Errors: the communicator's; kIo, on rank 0 only, after the last call of it.
// Memory: the text of one rank at a time, about 200 bytes a slice.
void write_trace(const std::string& path, const RankTrace& mine, Communicator& communicator);

}  // namespace gxp
