#include "lib/job/failure/explain_failure.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "lib/base/error.h"
#include "lib/base/json/json.h"
#include "lib/job/failure/source_lines.h"

namespace gxp {
namespace {

// Code in which a thread only waits, or tells of the failure.
constexpr std::array<std::string_view, 6> kWaitingCode = {"lib/base/",
                                                          "lib/device/",
                                                          "lib/job/",
                                                          "lib/net/store/",
                                                          "lib/collective/communicator_state",
                                                          "lib/collective/call_queue"};

bool only_waits(const SourceLine& line) {
  return std::ranges::any_of(kWaitingCode,
                             [&](std::string_view start) { return line.file.starts_with(start); });
}

struct PlacedFrame {
  const StackFrame* frame = nullptr;
  SourceLine line;
};

class Explanation {
 public:
  explicit Explanation(const std::vector<RankFailure>& failures)
      : failures_(failures), build_(build_id()), verdict_(find_verdict()) {}

  Report report(bool all_threads) {
    add_blame();
    add_progress();
    add_ranks();
    for (const RankFailure& failure : failures_)
      if (all_threads || &failure == shown()) add_threads(failure);
    if (const ThreadStack* stack = stuck_thread(*shown())) add_stack(*stack);
    return std::move(report_);
  }

 private:
  [[nodiscard]] std::optional<FailureVerdict> find_verdict() const {
    for (const RankFailure& failure : failures_)
      if (failure.verdict) return failure.verdict;
    return std::nullopt;
  }
  [[nodiscard]] const RankFailure* find(int rank) const {
    const auto found = std::ranges::find(failures_, rank, &RankFailure::rank);
    return found == failures_.end() ? nullptr : &*found;
  }
  // The rank to blame; null if it has left no report.
  [[nodiscard]] const RankFailure* culprit() const {
    return verdict_ ? find(verdict_->rank) : &failures_[0];
  }
  // Whose threads tell most.
  [[nodiscard]] const RankFailure* shown() const {
    return culprit() != nullptr ? culprit() : &failures_[0];
  }

  void add(const char* key, const char* heading, Cell value) {
    report_.facts.push_back({{key, heading}, std::move(value)});
  }

  [[nodiscard]] std::vector<PlacedFrame> place(const ThreadStack& stack, bool is_this_build) const {
    std::vector<PlacedFrame> placed;
    for (const StackFrame& frame : stack.frames)
      placed.push_back({&frame, is_this_build && frame.module.empty() ? lines_.find(frame.offset)
                                                                      : SourceLine{}});
    return placed;
  }

  // The innermost call of gxp's that does more than wait; empty if there is none.
  [[nodiscard]] SourceLine own_call(const RankFailure& failure, const ThreadStack& stack) const {
    for (const PlacedFrame& frame : place(stack, failure.build == build_))
      if (frame.line.is_own && !only_waits(frame.line)) return frame.line;
    return {};
  }

  [[nodiscard]] bool has_frame_of(const RankFailure& failure, const ThreadStack& stack,
                                  std::string_view folder) const {
    return std::ranges::any_of(place(stack, failure.build == build_),
                               [&](const PlacedFrame& frame) {
                                 return frame.line.is_own && frame.line.file.starts_with(folder);
                               });
  }

  // The thread that is in the rank's operation, if it is in one, or that does what the rank does;
  // else the main thread, which then waits for others. Null if no thread has told.
  [[nodiscard]] const ThreadStack* stuck_thread(const RankFailure& failure) const {
    if (failure.threads.empty()) return nullptr;
    const auto flight = flight_of(failure);
    const bool communicates = flight && !flight->entries.empty() &&
                              flight->entries.back().state == FlightEntry::State::kRunning;
    const std::string_view folder = communicates                 ? "lib/collective/"
                                    : failure.activity == "data" ? "lib/data/"
                                                                 : "kernels/";
    // The main thread last: where it has a call of that folder, another thread carries it out.
    for (auto stack = failure.threads.rbegin(); stack != failure.threads.rend(); ++stack)
      if (own_call(failure, *stack).file.starts_with(folder) ||
          (communicates && has_frame_of(failure, *stack, folder)))
        return &*stack;
    return &failure.threads[0];
  }

  // "lib/train/run.cc:12 in gxp::f".
  [[nodiscard]] Cell call_of(const RankFailure& failure, const ThreadStack* stack) const {
    const SourceLine line = stack == nullptr ? SourceLine{} : own_call(failure, *stack);
    if (line.file.empty()) return {};
    return fmt::format("{}:{} in {}", line.file, line.line, line.function);
  }

  // The call of a library that the thread is in.
  static Cell innermost(const ThreadStack& stack) {
    for (const StackFrame& frame : stack.frames) {
      if (frame.module.empty()) return {};
      if (!frame.symbol.empty()) return frame.symbol;
    }
    return {};
  }

  // Whether the ranks waited in vain for the one to blame, which has not failed by itself.
  [[nodiscard]] bool says(std::string_view words) const {
    return verdict_ && verdict_->reason.find(words) != std::string::npos;
  }
  [[nodiscard]] bool hangs() const {
    return says("has not entered") || says("waits for nobody") || says("waits for it") ||
           says("wait for each other");
  }

  void add_blame() {
    const int rank = verdict_ ? verdict_->rank : failures_[0].rank;
    const RankFailure* failure = culprit();
    add("rank", "to blame: rank", int64_t{rank});
    if (failure != nullptr) {
      add("host", "on host", failure->host);
      add("process", "as process", failure->process);
    }
    add("reason", "", verdict_ ? verdict_->reason : failures_[0].error);
    if (failure != nullptr && hangs())
      add("stuck_at", "stuck at", call_of(*failure, stuck_thread(*failure)));
    if (shown()->build != build_)
      add("build", "lines",
          "another build of gxp has failed: with that one, this command shows lines of code");
    add("remedy", "what to do", std::string(remedy()) + ", then continue with gxp train --resume");
  }

  [[nodiscard]] std::string_view remedy() const {
    if (says("does not respond"))
      return "see whether its process was stopped, or its host is down or out of reach";
    if (says("without a goodbye"))
      return "see who killed it (the OS for lack of memory, see dmesg; a scheduler's limit) or "
             "whether it crashed";
    if (hangs())
      return "see where it is stuck: where it reads or writes, the file system may hang; where it "
             "computes, raise comm.timeout_s if it may be so late";
    return "mend what the reason names";
  }

  void add_progress() {
    const RankFailure& first = failures_[0];
    add("time", "failed at", first.time);
    add("step", "", first.step > 0 ? Cell(first.step) : Cell());
    if (!first.metrics.empty()) {
      const Json last = parse_json(first.metrics, "metrics of rank 0");
      const bool has = last.is_object() && last.contains("loss") && last["loss"].is_number();
      if (has) add("loss", "last loss", last["loss"].get<double>());
    }
    add("world_size", "ranks", int64_t{first.world_size});
    add("reports", "of which reported", int64_t(failures_.size()));
  }

  void add_ranks() {
    Table& table = report_.add_table(
        "ranks", {{"rank"}, {"host"}, {"process"}, {"activity"}, {"operation"}, {"at"}});
    for (const RankFailure& failure : failures_) {
      const auto flight = flight_of(failure);
      table.add_row(int64_t{failure.rank}, failure.host, failure.process, failure.activity,
                    flight ? Cell(describe_last(*flight)) : Cell(),
                    call_of(failure, stuck_thread(failure)));
    }
  }

  void add_threads(const RankFailure& failure) {
    if (threads_ == nullptr)
      threads_ = &report_.add_table("threads", {{"rank"}, {"thread"}, {"state"}, {"in"}, {"at"}});
    for (const ThreadStack& stack : failure.threads)
      threads_->add_row(int64_t{failure.rank}, stack.name, stack.state, innermost(stack),
                        call_of(failure, &stack));
  }

  // Of the thread that is stuck, innermost first.
  void add_stack(const ThreadStack& stack) {
    Table& table = report_.add_table("stack", {{"rank"}, {"thread"}, {"at"}, {"function"}});
    for (const PlacedFrame& frame : place(stack, shown()->build == build_)) {
      const std::string& name =
          frame.line.function.empty() ? frame.frame->symbol : frame.line.function;
      const std::string module = frame.frame->module.empty() ? "gxp" : frame.frame->module;
      table.add_row(int64_t{shown()->rank}, stack.name,
                    frame.line.file.empty()
                        ? fmt::format("{}+{:#x}", module, frame.frame->offset)
                        : fmt::format("{}:{}", frame.line.file, frame.line.line),
                    name);
    }
  }

  const std::vector<RankFailure>& failures_;
  const std::string build_;
  const std::optional<FailureVerdict> verdict_;
  const SourceLines lines_;
  Report report_{.schema = "gxp.train-failure/1"};
  Table* threads_ = nullptr;
};

}  // namespace

Report explain_failure(const std::vector<RankFailure>& failures, bool all_threads) {
  return Explanation(failures).report(all_threads);
}

}  // namespace gxp
