#include "lib/tools/topology/view/host_layout.h"

#include <algorithm>
#include <utility>

namespace gxp {
namespace {

constexpr Font kLineFont{.size = 10};
constexpr double kNameHeight = 16;
constexpr double kLineHeight = 13;
constexpr double kTextPad = 7;       // between text and the edge of its box
constexpr double kPad = 10;          // between a box and what lies in it
constexpr double kGap = 14;          // between neighbours
constexpr double kStackGap = 8;      // between devices of a column
constexpr double kWireGap = 20;      // between a head and what hangs on it
constexpr double kTrack = 9;         // between wires side by side
constexpr double kLeastDevice = 84;  // widths
constexpr double kMostDevice = 168;
constexpr double kLeastHead = 150;
constexpr double kMostHead = 320;
constexpr size_t kMostStacked = 4;  // devices of a column that has no GPU

}  // namespace

HostLayout::HostLayout(const Diagram& diagram) : diagram_(diagram) {
  sizes_.resize(diagram.boxes.size());
  inside_.resize(diagram.boxes.size());
  measure_devices();
  for (const BoxId root : diagram.roots) measure(root);
}

bool HostLayout::is_container(BoxId box) const {
  const BoxKind kind = diagram_.boxes[box].kind;
  return kind == BoxKind::kNumaNode || kind == BoxKind::kSwitch;
}

// The width of its name and lines, with room to the edges.
double HostLayout::text_room(const Box& box) {
  double widest = text_width(box.name, kNameFont);
  for (const std::string& line : box.lines) widest = std::max(widest, text_width(line, kLineFont));
  return widest + 2 * kTextPad;
}

// All devices are as wide as the widest needs.
void HostLayout::measure_devices() {
  device_width_ = kLeastDevice;
  for (BoxId id = 0; id < diagram_.boxes.size(); ++id) {
    if (is_container(id)) continue;
    const Box& box = diagram_.boxes[id];
    if (box.kind == BoxKind::kGpu) gpu_lines_ = std::max(gpu_lines_, box.lines.size());
    device_width_ = std::max(device_width_, text_room(box));
  }
  device_width_ = std::min(device_width_, kMostDevice);
}

// All GPUs are as high as the highest needs.
double HostLayout::device_height(BoxId device) const {
  const Box& box = diagram_.boxes[device];
  const size_t lines = box.kind == BoxKind::kGpu ? gpu_lines_ : box.lines.size();
  return kNameHeight + kLineHeight * double(lines) + kTextPad;
}

double HostLayout::head_height(BoxId container) const { return device_height(container); }

HostLayout::Inside HostLayout::arrange(BoxId container) const {
  Inside inside;
  std::vector<BoxId> gpus;
  std::vector<BoxId> others;
  for (const BoxId id : diagram_.boxes[container].inside) {
    if (is_container(id)) {
      inside.containers.push_back(id);
    } else {
      (diagram_.boxes[id].kind == BoxKind::kGpu ? gpus : others).push_back(id);
    }
  }
  const size_t columns =
      gpus.empty() ? (others.size() + kMostStacked - 1) / kMostStacked : gpus.size();
  inside.columns.resize(columns);
  for (size_t i = 0; i < others.size(); ++i)
    inside.columns[i * columns / others.size()].devices.push_back(others[i]);
  for (size_t i = 0; i < gpus.size(); ++i) inside.columns[i].devices.push_back(gpus[i]);
  return inside;
}

HostLayout::Size HostLayout::measure(const Column& column) const {
  Size size{device_width_ + kTrack * double(column.devices.size() - 1), -kStackGap};
  for (const BoxId device : column.devices) size.height += device_height(device) + kStackGap;
  return size;
}

HostLayout::Size HostLayout::measure(BoxId container) {
  inside_[container] = arrange(container);
  double height = 0;
  for (const BoxId inner : inside_[container].containers)
    height = std::max(height, measure(inner).height);
  for (const Column& column : inside_[container].columns)
    height = std::max(height, measure(column).height);
  const double width = width_of(inside_[container]);
  const bool empty = width < 0;
  const double head = std::clamp(text_room(diagram_.boxes[container]), kLeastHead, kMostHead);
  sizes_[container] = {std::max(width + 2 * kPad, head),
                       head_height(container) + (empty ? kPad : kWireGap + height + kPad)};
  return sizes_[container];
}

// The width of containers and columns in a row; below 0 if there are none.
double HostLayout::width_of(const Inside& inside) const {
  const double containers =
      row_width(inside.containers, kGap, [&](BoxId box) { return sizes_[box].width; });
  const double columns =
      row_width(inside.columns, kGap, [&](const Column& column) { return measure(column).width; });
  return containers + kGap + columns;
}

double HostLayout::width() const { return std::max(0.0, width_of({.containers = diagram_.roots})); }

double HostLayout::height() const {
  double height = 0;
  for (const BoxId root : diagram_.roots) height = std::max(height, sizes_[root].height);
  return height;
}

void HostLayout::draw(Point corner, Picture& picture) {
  for (const BoxId root : diagram_.roots) {
    draw_container(root, {corner.x, corner.y, sizes_[root].width, height()}, picture);
    corner.x += sizes_[root].width + kGap;
  }
}

void HostLayout::write_lines(BoxId box, const Area& area, Picture& picture) const {
  const double room = area.width - 2 * kTextPad;
  double y = area.y + kNameHeight;
  picture.texts.push_back(
      {{area.x + kTextPad, y - 1}, fit_text(diagram_.boxes[box].name, room, kNameFont), kNameFont});
  for (const std::string& line : diagram_.boxes[box].lines) {
    y += kLineHeight;
    picture.texts.push_back({{area.x + kTextPad, y}, fit_text(line, room, kLineFont), kLineFont});
  }
}

void HostLayout::draw_wire(BoxId box, std::vector<Point> points, Picture& picture) const {
  const Wire& wire = diagram_.boxes[box].wire;
  picture.lines.push_back({.points = std::move(points),
                           .width = line_width(wire.gb_per_s),
                           .style = wire.gb_per_s > 0 ? LineStyle::kPcie : LineStyle::kUnknown,
                           .tip = wire.gb_per_s > 0
                                      ? wire.label + ", " + format_gb_per_s(wire.gb_per_s) + " GB/s"
                                      : "its bandwidth is not known"});
}

void HostLayout::draw_container(BoxId container, const Area& area, Picture& picture) {
  const Box& box = diagram_.boxes[container];
  const bool is_node = box.kind == BoxKind::kNumaNode;
  const Area head{area.x, area.y, area.width, head_height(container)};
  areas_[container] = area;
  picture.boxes.push_back({area, is_node ? BoxStyle::kNumaNode : BoxStyle::kSwitch, ""});
  picture.boxes.push_back({head, is_node ? BoxStyle::kNumaHead : BoxStyle::kSwitchHead, box.tip});
  write_lines(container, head, picture);

  const Inside& inside = inside_[container];
  double x = area.middle_x() - width_of(inside) / 2;
  const double top = head.bottom() + kWireGap;
  const double room = area.bottom() - kPad - top;
  for (const BoxId inner : inside.containers) {
    const Area place{x, top, sizes_[inner].width, room};
    draw_wire(inner, {{place.middle_x(), head.bottom()}, {place.middle_x(), top}}, picture);
    draw_container(inner, place, picture);
    x += place.width + kGap;
  }
  for (const Column& column : inside.columns) {
    const double taken = measure(column).width;
    draw_column(column, {x, top, taken, room}, head.bottom(), picture);
    x += taken + kGap;
  }
}

void HostLayout::draw_column(const Column& column, const Area& area, double head_bottom,
                             Picture& picture) {
  const double left = area.right() - device_width_;
  double y = area.y;
  for (size_t i = 0; i < column.devices.size(); ++i) {
    const BoxId id = column.devices[i];
    const Box& box = diagram_.boxes[id];
    const double height = device_height(id);
    if (box.kind == BoxKind::kGpu) y = area.bottom() - height;
    const Area place{left, y, device_width_, height};
    areas_[id] = place;
    const double track = left - kTrack * double(i);
    draw_wire(id,
              i == 0 ? std::vector<Point>{{place.middle_x(), head_bottom}, {place.middle_x(), y}}
                     : std::vector<Point>{{track, head_bottom},
                                          {track, place.middle_y()},
                                          {left, place.middle_y()}},
              picture);
    picture.boxes.push_back({place,
                             box.kind == BoxKind::kGpu   ? BoxStyle::kGpu
                             : box.kind == BoxKind::kNic ? BoxStyle::kNic
                                                         : BoxStyle::kDevice,
                             box.tip});
    write_lines(id, place, picture);
    y += height + kStackGap;
  }
}

}  // namespace gxp
