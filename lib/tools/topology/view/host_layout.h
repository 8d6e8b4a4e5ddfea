// The places of a diagram's boxes, and the wires from each box to the one around it.
#pragma once

#include <map>
#include <vector>

#include "lib/tools/topology/view/diagram.h"
#include "lib/tools/topology/view/picture.h"

namespace gxp {

class HostLayout {
 public:
  explicit HostLayout(const Diagram& diagram);

  // Draws all roots side by side, from (x, y); GPUs end at the same height, as far as the boxes
  // around them allow.
  void draw(Point corner, Picture& picture);
  // The size of what draw() draws.
  [[nodiscard]] double width() const;
  [[nodiscard]] double height() const;
  [[nodiscard]] const std::map<BoxId, Area>& areas() const { return areas_; }  // after draw()

 private:
  // Devices under one another, each with a wire of its own to the head above: the first's comes
  // from straight above, the others' along the left side.
  struct Column {
    std::vector<BoxId> devices{};  // the GPU last
  };
  struct Inside {
    std::vector<BoxId> containers{};
    std::vector<Column> columns{};
  };
  struct Size {
    double width = 0;
    double height = 0;
  };

  [[nodiscard]] bool is_container(BoxId box) const;
  void measure_devices();
  static double text_room(const Box& box);
  Size measure(BoxId container);
  [[nodiscard]] Inside arrange(BoxId container) const;
  [[nodiscard]] Size measure(const Column& column) const;
  [[nodiscard]] double width_of(const Inside& inside) const;
  [[nodiscard]] double head_height(BoxId container) const;
  [[nodiscard]] double device_height(BoxId device) const;
  void draw_container(BoxId container, const Area& area, Picture& picture);
  void draw_column(const Column& column, const Area& area, double head_bottom, Picture& picture);
  void draw_wire(BoxId box, std::vector<Point> points, Picture& picture) const;
  void write_lines(BoxId box, const Area& area, Picture& picture) const;

  const Diagram& diagram_;
  double device_width_ = 0;
  size_t gpu_lines_ = 0;
  std::vector<Size> sizes_;     // by box, of containers
  std::vector<Inside> inside_;  // by box, of containers
  std::map<BoxId, Area> areas_;
};

}  // namespace gxp
