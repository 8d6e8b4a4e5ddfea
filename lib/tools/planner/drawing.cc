#include "lib/tools/planner/drawing.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "lib/base/bytes.h"
#include "lib/report/svg.h"

namespace gxp {
namespace {

constexpr size_t kPlotColumns = 72;
constexpr int kPlotRows = 12;

constexpr int kWidth = 1200;
constexpr int kLeft = 110;  // of what is drawn: names of lanes, bytes
constexpr int kRight = kWidth - 20;
constexpr int kTop = 44;
constexpr int kHeight = 300;  // of the curve
constexpr int kRowHeight = 46;

// By MemoryKind.
constexpr std::array<std::string_view, kMemoryKindCount> kKindColours = {
    "#4e79a7", "#f28e2b", "#e15759", "#76b7b2", "#edc948", "#b07aa1"};

struct OpColour {
  OpKind kind;
  std::string_view colour;
};
// In the order of the key; other kinds are grey.
constexpr std::array kOpColours = {OpColour{OpKind::kForward, "#4e79a7"},
                                   OpColour{OpKind::kLoss, "#e15759"},
                                   OpColour{OpKind::kRecompute, "#edc948"},
                                   OpColour{OpKind::kBackward, "#f28e2b"},
                                   OpColour{OpKind::kGatherParameters, "#76b7b2"},
                                   OpColour{OpKind::kReduceGradients, "#b07aa1"},
                                   OpColour{OpKind::kUpdate, "#59a14f"}};

std::string_view colour_of(OpKind kind) {
  const auto found = std::ranges::find(kOpColours, kind, &OpColour::kind);
  return found == kOpColours.end() ? "#9c9c9c" : found->colour;
}

double between(double value, double all, double low, double high) {
  return low + (high - low) * value / std::max(all, 1e-30);
}

Svg open_page(double height, std::string_view title) {
  Svg svg(kWidth, height, {{"font-family", "sans-serif"}, {"font-size", 12}});
  svg.add_text({{"x", 16}, {"y", 22}}, title);
  return svg;
}

// `anchor`: "start", "middle" or "end" of the words is at x.
void write(Svg& svg, double x, double y, std::string_view words,
           std::string_view anchor = "start") {
  svg.add_text({{"x", x}, {"y", y}, {"text-anchor", anchor}}, words);
}

// A colour and what it means; (x, y) is the upper left corner.
void draw_key(Svg& svg, double x, double y, std::string_view colour, std::string_view meaning) {
  svg.add("rect", {{"x", x}, {"y", y}, {"width", 12}, {"height", 12}, {"fill", colour}});
  write(svg, x + 18, y + 10, meaning);
}

void draw_axis(Svg& svg, double y) {
  svg.add("line", {{"x1", kLeft}, {"y1", y}, {"x2", kRight}, {"y2", y}, {"stroke", "#bbb"}});
}

// The most that lives in each of `columns` equal parts of the operations.
std::vector<uint64_t> columns_of(const MemoryReplay& replay, size_t columns) {
  std::vector<uint64_t> most(columns, 0);
  for (size_t id = 0; id < replay.live.size(); ++id) {
    uint64_t& column = most[id * columns / replay.live.size()];
    column = std::max(column, total_of(replay.live[id]));
  }
  return most;
}

// One kind's area, from the top of the kinds below it to its own.
void draw_kind(Svg& svg, const MemoryReplay& replay, size_t kind, uint64_t most) {
  const auto count = double(replay.live.size());
  const auto y_of = [&](uint64_t bytes) {
    return between(double(bytes), double(most), kTop + kHeight, kTop);
  };
  std::string upper;
  std::string lower;
  for (size_t id = 0; id < replay.live.size(); ++id) {
    uint64_t below = 0;
    for (size_t under = 0; under < kind; ++under) below += replay.live[id][under];
    const double left = between(double(id), count, kLeft, kRight);
    const double right = between(double(id + 1), count, kLeft, kRight);
    const double top = y_of(below + replay.live[id][kind]);
    const double bottom = y_of(below);
    upper += fmt::format("{:.1f},{:.1f} {:.1f},{:.1f} ", left, top, right, top);
    lower = fmt::format("{:.1f},{:.1f} {:.1f},{:.1f} ", right, bottom, left, bottom) + lower;
  }
  svg.add("polygon", {{"points", upper + lower}, {"fill", kKindColours[kind]}});
}

}  // namespace

std::string memory_plot(const MemoryReplay& replay) {
  if (replay.live.empty()) return "";
  const size_t columns = std::min(replay.live.size(), kPlotColumns);
  const std::vector<uint64_t> bytes = columns_of(replay, columns);
  const uint64_t most = std::max<uint64_t>(std::ranges::max(bytes), 1);
  std::string plot;
  for (int row = kPlotRows; row > 0; --row) {
    plot += fmt::format("{:>10} |", row == kPlotRows ? format_bytes(most) : "");
    for (const uint64_t column : bytes)
      plot += column * kPlotRows + kPlotRows / 2 >= most * uint64_t(row) ? '#' : ' ';
    plot.erase(plot.find_last_not_of(' ') + 1);
    plot += '\n';
  }
  const size_t peak = size_t(replay.peak) * columns / replay.live.size();
  plot += fmt::format("{:>10} +{}\n{:>{}}\n", 0, std::string(columns, '-'), '^', 13 + peak);
  return plot;
}

std::string memory_svg(const StepProgram& program, const MemoryReplay& replay) {
  const uint64_t most = total_of(replay.live[size_t(replay.peak)]);
  Svg svg =
      open_page(kTop + kHeight + 56,
                fmt::format("memory over {} operations; at most {}, in {}", replay.live.size(),
                            format_bytes(most), describe(program.ops[size_t(replay.peak)])));
  for (size_t kind = 0; kind < kMemoryKindCount; ++kind) {
    draw_kind(svg, replay, kind, most);
    draw_key(svg, kLeft + double(kind) * 150, kTop + kHeight + 26, kKindColours[kind],
             kMemoryKindNames[kind]);
  }
  draw_axis(svg, kTop + kHeight);
  write(svg, kLeft - 8, kTop + 10, format_bytes(most), "end");
  write(svg, kLeft - 8, kTop + kHeight, "0", "end");
  return std::move(svg).finish();
}

std::string timeline_svg(const StepProgram& program, const StepTime& time) {
  const bool offloads =
      std::ranges::any_of(program.ops, [](const Op& op) { return op.lane == Lane::kOffload; });
  const int lanes = offloads ? kLaneCount : kLaneCount - 1;
  Svg svg =
      open_page(kTop + lanes * kRowHeight + 40,
                fmt::format("one step: {:.3g} ms, of which communication is exposed {:.3g} ms",
                            time.seconds * 1e3, time.exposed_seconds * 1e3));
  for (int lane = 0; lane < lanes; ++lane)
    write(svg, kLeft - 8, kTop + lane * kRowHeight + 24, to_string(Lane(lane)), "end");
  for (size_t id = 0; id < program.ops.size(); ++id) {
    const Op& op = program.ops[id];
    const OpTime& when = time.ops[id];
    const double left = between(when.begin, time.seconds, kLeft, kRight);
    const double right = between(when.end, time.seconds, kLeft, kRight);
    svg.add("rect",
            {{"x", left},
             {"y", kTop + int(op.lane) * kRowHeight},
             {"width", std::max(right - left - 0.5, 0.5)},
             {"height", kRowHeight - 8},
             {"fill", colour_of(op.kind)}},
            fmt::format("{}: {:.4g} ms from {:.4g} ms", describe(op), (when.end - when.begin) * 1e3,
                        when.begin * 1e3));
  }
  const int bottom = kTop + lanes * kRowHeight;
  draw_axis(svg, bottom);
  write(svg, kLeft, bottom + 18, "0");
  write(svg, kRight, bottom + 18, fmt::format("{:.3g} ms", time.seconds * 1e3), "end");
  double x = kLeft + 60;
  for (const OpColour& op : kOpColours) {
    draw_key(svg, x, bottom + 8, op.colour, to_string(op.kind));
    x += 150;
  }
  return std::move(svg).finish();
}

}  // namespace gxp
