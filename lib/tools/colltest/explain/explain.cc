#include "lib/tools/colltest/explain/explain.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <vector>

#include "lib/base/bytes.h"
#include "lib/collective/tune/one_port_replay.h"
#include "lib/collective/tune/shared_selection.h"
#include "lib/report/svg.h"

namespace gxp {
namespace {

// When a rank's step happens; 0 for what it does not do.
struct StepRounds {
  int sends = 0;
  int receives = 0;
};

std::vector<std::vector<StepRounds>> rounds_of_steps(const Schedule& schedule,
                                                     const OnePortReplay& replay) {
  std::vector<std::vector<StepRounds>> rounds(schedule.size());
  for (size_t rank = 0; rank < schedule.size(); ++rank) rounds[rank].resize(schedule[rank].size());
  for (const Message& message : replay.messages) {
    rounds[size_t(message.from)][message.send_step].sends = message.send_round;
    if (message.recv_round == 0) continue;
    rounds[size_t(message.to)][message.recv_step].receives = message.recv_round;
  }
  return rounds;
}

std::string to_string(StepRounds rounds) {
  if (rounds.sends == 0 && rounds.receives == 0) return "";
  if (rounds.sends == 0) return fmt::format("{}", rounds.receives);
  if (rounds.receives == 0 || rounds.sends == rounds.receives)
    return fmt::format("{}", rounds.sends);
  return fmt::format("{}..{}", rounds.sends, rounds.receives);
}

// Sizes in pixels.
constexpr int kMargin = 20;
constexpr int kHead = 84;  // above the first round
constexpr int kFoot = 60;  // below the last
constexpr int kRoundHeight = 64;
constexpr int kLetterWidth = 7;   // of 11 pixels high monospace type
constexpr int kLeastWidth = 640;  // of a title
constexpr int kRoundNames = 60;   // the column that counts the rounds

constexpr std::string_view kStyle = R"(
text { font: 11px monospace; fill: #222; paint-order: stroke; stroke: #fff; stroke-width: 3px; }
.title { font-size: 14px; font-weight: bold; }
.rank { text-anchor: middle; font-weight: bold; }
.round { fill: #888; }
.life { stroke: #bbb; }
.row { stroke: #eee; }
.store { stroke: #1f6fb2; fill: #1f6fb2; }
.fold { stroke: #b23a1f; fill: #b23a1f; }
.token { stroke: #777; fill: #777; stroke-dasharray: 4 3; }
.plus { stroke: #fff; }
.local { fill: #fff3c4; stroke: #a67c00; }
.moves { pointer-events: none; }
)";

// Local steps that a rank does in a row, after it has received in `round`.
struct LocalSteps {
  int rank;
  int round;
  int copies = 0;
  int folds = 0;
  std::string details{};
};

class ScheduleDrawing {
 public:
  ScheduleDrawing(const Algorithm& algorithm, const CallShape& shape, const Schedule& schedule)
      : algorithm_(algorithm),
        shape_(shape),
        schedule_(schedule),
        replay_(replay_one_port(schedule)),
        rounds_(last_round()),
        widest_(widest_label()),
        svg_(width(), height(), {}, "", kStyle) {}

  std::string draw() && {
    draw_title();
    for (int rank = 0; rank < shape_.world_size; ++rank) draw_rank(rank);
    for (int round = 1; round <= rounds_; ++round) draw_round(round);
    for (const Message& message : replay_.messages) {
      if (message.recv_round > 0) draw_arrow(message);
    }
    // Text last, so that no arrow crosses it.
    for (const Message& message : replay_.messages) draw_labels(message);
    for (const LocalSteps& moves : find_moves()) draw_moves(moves);
    draw_legend();
    return std::move(svg_).finish();
  }

 private:
  void add_line(std::string_view look, int x1, int y1, int x2, int y2) {
    svg_.add("line", {{"class", look}, {"x1", x1}, {"y1", y1}, {"x2", x2}, {"y2", y2}});
  }
  // `look`: a class of kStyle; "": none.
  void add_text(std::string_view look, int x, int y, std::string_view words) {
    svg_.add_text({{"class", look}, {"x", x}, {"y", y}}, words);
  }
  void add_plus(int x, int y) {
    svg_.add("circle", {{"class", "fold"}, {"cx", x}, {"cy", y}, {"r", 5}});
    svg_.add("path", {{"class", "plus"}, {"d", fmt::format("M{} {}h6m-3 -3v6", x - 3, y)}});
  }
  [[nodiscard]] const CollectiveStep& step_of(int rank, size_t step) const {
    return schedule_[size_t(rank)][step];
  }
  static std::string label_of(const CollectiveStep& step) {
    return step.token ? "token" : to_string(step.leaving);
  }

  [[nodiscard]] int last_round() const {
    int last = 0;
    for (const Message& message : replay_.messages)
      last = std::max({last, message.send_round, message.recv_round});
    return last;
  }
  [[nodiscard]] size_t widest_label() const {
    size_t widest = 0;
    for (const Message& message : replay_.messages) {
      widest = std::max(widest, label_of(step_of(message.from, message.send_step)).size());
      if (message.recv_round == 0) continue;
      widest = std::max(widest, to_string(step_of(message.to, message.recv_step).into).size());
    }
    return widest;
  }

  [[nodiscard]] int column_width() const { return std::max(90, int(widest_) * kLetterWidth + 24); }
  [[nodiscard]] int x_of(int rank) const {
    return kMargin + kRoundNames + rank * column_width() + column_width() / 2;
  }
  [[nodiscard]] int y_before(int round) const { return kHead + (round - 1) * kRoundHeight + 17; }
  [[nodiscard]] int y_after(int round) const { return kHead + round * kRoundHeight - 24; }
  [[nodiscard]] int width() const {
    return std::max(kLeastWidth, 2 * kMargin + kRoundNames + shape_.world_size * column_width());
  }
  [[nodiscard]] int height() const { return kHead + rounds_ * kRoundHeight + kFoot; }

  void draw_title() {
    add_text(
        "title", kMargin, kMargin + 4,
        fmt::format("{} {}, {} ranks, {} elements, {} rounds", algorithm_.name,
                    to_string(algorithm_.collective), shape_.world_size, shape_.count, rounds_));
  }

  void draw_rank(int rank) {
    const int x = x_of(rank);
    add_line("life", x, kHead, x, kHead + rounds_ * kRoundHeight);
    const bool is_root = has_root(algorithm_.collective) && rank == shape_.root;
    add_text("rank", x, kHead - 38, fmt::format("rank {}{}", rank, is_root ? " (root)" : ""));
    if (shape_.hosts.empty()) return;
    add_text("rank", x, kHead - 24, fmt::format("host {}", shape_.hosts[size_t(rank)]));
  }

  void draw_round(int round) {
    const int y = kHead + (round - 1) * kRoundHeight;
    add_line("row", kMargin, y, width() - kMargin, y);
    add_text("round", kMargin, y + kRoundHeight / 2 + 4, fmt::format("round {}", round));
  }

  static std::string_view kind_of(const CollectiveStep& received) {
    if (received.token) return "token";
    return received.fold ? "fold" : "store";
  }

  // The head is at the receiver: a plus in a disc for a fold, a triangle otherwise.
  void draw_arrow(const Message& message) {
    const CollectiveStep& received = step_of(message.to, message.recv_step);
    const int x = x_of(message.to);
    const int y = y_after(message.recv_round);
    add_line(kind_of(received), x_of(message.from), y_before(message.send_round), x, y);
    if (received.fold) return add_plus(x, y);
    const int side = message.from < message.to ? -7 : 7;
    svg_.add("path",
             {{"class", kind_of(received)}, {"d", fmt::format("M{} {}l{} -6v8z", x, y, side)}});
  }

  // The range that is sent, next to the sender; if it arrives at another, that one next to the
  // receiver.
  void draw_labels(const Message& message) {
    const CollectiveStep& sent = step_of(message.from, message.send_step);
    add_text("", x_of(message.from) + 5, y_before(message.send_round) - 4, label_of(sent));
    if (message.recv_round == 0) return;
    const CollectiveStep& received = step_of(message.to, message.recv_step);
    if (received.into == sent.leaving) return;
    add_text("", x_of(message.to) + 8, y_after(message.recv_round) + 4, to_string(received.into));
  }

  [[nodiscard]] std::vector<LocalSteps> find_moves() const {
    const auto rounds = rounds_of_steps(schedule_, replay_);
    std::vector<LocalSteps> all;
    for (int rank = 0; rank < shape_.world_size; ++rank) {
      int round = 0;
      bool in_a_row = false;
      for (size_t i = 0; i < schedule_[size_t(rank)].size(); ++i) {
        const CollectiveStep& step = step_of(rank, i);
        if (step.local && step.leaving.count == 0) continue;
        const StepRounds when = rounds[size_t(rank)][i];
        round = std::max({round, when.sends, when.receives});
        if (step.local && !in_a_row) all.push_back({rank, round});
        in_a_row = step.local;
        if (!step.local) continue;
        ++(step.fold ? all.back().folds : all.back().copies);
        all.back().details += to_string(step) + '\n';
      }
    }
    return all;
  }

  static std::string count_of(int count, std::string_view what) {
    return count == 0 ? "" : fmt::format("{} x {}", count, what);
  }

  // A box between two rounds; the steps themselves show when the pointer rests on it.
  void draw_moves(const LocalSteps& moves) {
    const std::string text = count_of(moves.copies, "copy") +
                             (moves.copies > 0 && moves.folds > 0 ? ", " : "") +
                             count_of(moves.folds, "fold");
    const int box_width = int(text.size()) * kLetterWidth + 6;
    const int x = x_of(moves.rank) - box_width / 2;
    const int y = kHead + moves.round * kRoundHeight - 15;
    svg_.add("rect", {{"class", "local"}, {"x", x}, {"y", y}, {"width", box_width}, {"height", 13}},
             moves.details);
    add_text("moves", x + 3, y + 10, text);
  }

  void draw_legend() {
    const int y = height() - kMargin;
    add_plus(kMargin + 5, y - 4);
    add_text("", kMargin + 15, y, "folded");
    svg_.add("path",
             {{"class", "store"}, {"d", fmt::format("M{} {}l-7 -6v8z", kMargin + 82, y - 2)}});
    add_text("", kMargin + 88, y, "stored");
    if (algorithm_.scratch == nullptr) return;
    add_text("", kMargin + 150, y, fmt::format("from {} on: scratch", shape_.count));
  }

  const Algorithm& algorithm_;
  const CallShape& shape_;
  const Schedule& schedule_;
  OnePortReplay replay_;
  int rounds_;
  size_t widest_;  // letters of a label
  Svg svg_;
};

std::vector<Cell> plan_row(const BenchCase& bench, const AlgorithmPlan& plan, int world_size) {
  const Bandwidth expected =
      bandwidth(*bench.operation, bench.size_bytes(), plan.predicted_seconds, world_size);
  return make_row(bench.operation->name, bench.size_bytes(), to_string(bench.dtype),
                  plan.algorithm->name, plan.channels, plan.segment_bytes,
                  plan.predicted_seconds * 1e6, expected.busbw, plan.reason);
}

}  // namespace

std::string schedule_table(const Schedule& schedule) {
  const auto rounds = rounds_of_steps(schedule, replay_one_port(schedule));
  std::string table = "rank  step  round  what\n";
  for (size_t rank = 0; rank < schedule.size(); ++rank) {
    for (size_t i = 0; i < schedule[rank].size(); ++i) {
      table += fmt::format("{:4}  {:4}  {:>5}  {}\n", rank, i, to_string(rounds[rank][i]),
                           to_string(schedule[rank][i]));
    }
  }
  return table;
}

std::string schedule_svg(const Algorithm& algorithm, const CallShape& shape,
                         const Schedule& schedule) {
  return ScheduleDrawing(algorithm, shape, schedule).draw();
}

Explanation explain(std::span<const BenchCase> cases, const GroupTopology& topology,
                    const SelectionSettings& settings, const Profile& profile,
                    MemoryOrigin memory) {
  const CostModel model(topology, profile);
  // Whether CMA works is known from the profile, if at all.
  const MethodLimits limits{
      .ranks = topology.world_size, .cma = true, .wanted = wanted_method(settings)};
  Explanation result;
  result.plans.schema = "gxp.allreduce-test.plan/1";
  result.plans.facts = {{{"world_size", "ranks"}, int64_t{topology.world_size}},
                        {{"transport"}, std::string(topology.transport)},
                        {{"memory"}, std::string(kMemoryOriginNames[size_t(memory)])}};
  Table& table = result.plans.add_table("plans", {{"op"},
                                                  {"size", "size", Style::kBytes},
                                                  {"type"},
                                                  {"algorithm"},
                                                  {"channels"},
                                                  {"segment_bytes", "segment", Style::kBytes},
                                                  {"predicted_us"},
                                                  {"expected_busbw", "expected busbw GB/s"},
                                                  {"reason"}});
  for (const BenchCase& bench : cases) {
    if (!bench.operation->collective) continue;  // one message each; nothing to choose
    const Call call = call_of(bench, 0);
    const AlgorithmPlan plan = select_with_sharing(call, settings, model, limits, memory);
    table.add_row(plan_row(bench, plan, topology.world_size));
    if (&bench != &cases.back()) continue;
    const CallShape shape = shape_of(call, plan, topology);
    const Schedule schedule = record_schedule(*plan.algorithm, shape);
    result.title = fmt::format("{} of {} {} by {} on {} ranks; ranges are in elements",
                               bench.operation->name, format_bytes(bench.size_bytes()),
                               to_string(bench.dtype), plan.algorithm->name, topology.world_size);
    result.steps = schedule_table(schedule);
    result.svg = schedule_svg(*plan.algorithm, shape, schedule);
  }
  return result;
}

}  // namespace gxp
