#include "lib/train/trace/trace_file.h"

#include <fcntl.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <optional>
#include <vector>

#include "lib/base/error.h"
#include "lib/base/fd.h"
#include "lib/base/host_name.h"
#include "lib/base/json/json.h"
#include "lib/base/text_file.h"
#include "lib/collective/communicator.h"
#include "lib/collective/gather_texts.h"

namespace gxp {
namespace {

constexpr int kRunThread = 0;  // the lanes follow

int thread_of(const TraceSlice& slice) {
  return slice.op == nullptr ? kRunThread : 1 + int(slice.op->lane);
}

std::string_view category_of(const Op& op) {
  if (row_of(op.kind).ranks != OpRanks::kAlone) return "communication";
  if (op.lane == Lane::kOffload) return "offload";
  switch (op.kind) {
    case OpKind::kNextBatch:
      return "data";
    case OpKind::kForward:
    case OpKind::kLoss:
      return "forward";
    case OpKind::kRecompute:
    case OpKind::kBackward:
    case OpKind::kAddGradients:
      return "backward";
    default:
      return "optimizer";
  }
}

// Of the whole buffer that the ranks of the group reduce or gather, before any compression.
size_t bytes_of(const OpCollective& collective) {
  return collective.count * size_of(collective.dtype);
}

std::string facts_of(const TraceSlice& slice) {
  std::string facts = fmt::format(R"("step":{})", slice.step);
  if (slice.op != nullptr && slice.op->collective.count > 0)
    facts += fmt::format(R"(,"bytes":{})", bytes_of(slice.op->collective));
  if (slice.sent_bytes > 0)
    facts += fmt::format(R"(,"sent_bytes":{},"sent_between_hosts_bytes":{})", slice.sent_bytes,
                         slice.sent_between_hosts);
  return facts;
}

// Times are in microseconds.
std::string event_of(const TraceSlice& slice, const RankTrace& trace, int rank) {
  const int64_t begin = by_rank_zero(slice.begin_ns, trace.first, trace.last);
  const bool is_op = slice.op != nullptr;
  return fmt::format(
      R"({{"ph":"X","pid":{},"tid":{},"ts":{}.{:03},"dur":{:.3f},"name":"{}","cat":"{}","args":{{{}}}}})",
      rank, thread_of(slice), begin / 1000, begin % 1000,
      double(slice.end_ns - slice.begin_ns) / 1e3, is_op ? describe(*slice.op) : slice.name,
      is_op ? category_of(*slice.op) : "run", facts_of(slice));
}

std::string label(int rank, int thread, std::string_view what, const std::string& name) {
  return fmt::format(R"({{"ph":"M","pid":{},"tid":{},"name":"{}","args":{{"name":{}}}}})", rank,
                     thread, what, write_json(name));
}

int64_t error_ns(const RankTrace& trace) {
  return std::max(trace.first.error_ns, trace.last.error_ns);
}

std::string events_of(const RankTrace& trace, int rank) {
  std::string text =
      label(rank, kRunThread, "process_name",
            fmt::format("rank {} on {}, clock within {:.1f} us", rank, host_name(),
                        double(error_ns(trace)) / 1e3)) +
      fmt::format(
          R"(,{{"ph":"M","pid":{},"name":"process_sort_index","args":{{"sort_index":{}}}}},)", rank,
          rank) +
      label(rank, kRunThread, "thread_name", "run");
  for (const Lane lane : {Lane::kCompute, Lane::kComm, Lane::kOffload})
    text += "," + label(rank, 1 + int(lane), "thread_name", std::string(to_string(lane)));
  for (const TraceSlice& slice : trace.slices) text += ",\n" + event_of(slice, trace, rank);
  return text;
}

// One rank's part of the file's "metadata".
std::string clock_of(const RankTrace& trace, int rank) {
  return write_json({{"rank", rank},
                     {"host", host_name()},
                     {"offset_ns", trace.last.ns},
                     {"error_ns", error_ns(trace)},
                     {"drift_ns", trace.last.ns - trace.first.ns},
                     {"dropped_slices", trace.dropped}});
}

// The first error is kept: what the other ranks send is received all the same.
class PatientFile {
 public:
  explicit PatientFile(const std::string& path) : path_(path), act_("write the trace " + path) {
    attempt([&] {
      const int flags = O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW;
      file_ = Fd(int(check_sys(::open(partial().c_str(), flags, 0666), act_)));
    });
  }
  void write(std::string_view text) {
    attempt([&] { write_fully(file_.get(), text, act_); });
  }
  // Throws what has failed.
  void complete() {
    attempt([&] { check_sys(::rename(partial().c_str(), path_.c_str()), act_); });
    if (error_) throw Error(*error_);
  }

 private:
  [[nodiscard]] std::string partial() const { return path_ + ".partial"; }
  template <class Act>
  void attempt(const Act& act) {
    if (error_) return;
    try {
      act();
    } catch (const Error& error) {
      error_ = error;
    }
  }

  const std::string path_, act_;
  Fd file_;
  std::optional<Error> error_;
};

std::string receive_text(Communicator& communicator, int from) {
  std::array<uint64_t, 1> size{};
  communicator.recv(from, memory_of(size));
  std::string text(size[0], '\0');
  communicator.recv(from, memory_of(text));
  return text;
}

void send_text(Communicator& communicator, const std::string& text) {
  const std::array<uint64_t, 1> size{text.size()};
  communicator.send(0, memory_of(size));
  communicator.send(0, memory_of(text));
}

}  // namespace

void write_trace(const std::string& path, const RankTrace& mine, Communicator& communicator) {
  const std::vector<std::string> clocks =
      gather_texts(communicator, clock_of(mine, communicator.rank()));
  const std::string events = events_of(mine, communicator.rank());
  if (communicator.rank() != 0) return send_text(communicator, events);
  PatientFile file(path);
  file.write(
      fmt::format("{{\"displayTimeUnit\":\"ms\",\"metadata\":{{\"clock\":\"rank 0's monotonic "
                  "clock\",\"ranks\":[\n{}]}},\n\"traceEvents\":[\n",
                  fmt::join(clocks, ",\n")));
  file.write(events);
  for (int rank = 1; rank < communicator.world_size(); ++rank)
    file.write(",\n" + receive_text(communicator, rank));
  file.write("\n]}\n");
  file.complete();
}

}  // namespace gxp
