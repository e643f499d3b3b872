// report/internal/svg.h: the shapes that every picture is made of. Coordinates are in pixels of the
// picture's viewBox, written with at most one digit after the point; `style` is the shape's class,
// may be empty.
#pragma once

#include <string>
#include <string_view>

namespace regatta::report {

struct Point {
  double x = 0;
  double y = 0;
};

struct Box {
  double x = 0;
  double y = 0;
  double width = 0;
  double height = 0;

  double right() const { return x + width; }
  double bottom() const { return y + height; }
  double middle() const { return x + width / 2; }
};

// For element content and quoted attributes, also what XML cannot hold: control characters become
// '?'.
std::string xml_text(std::string_view text);

std::string svg_number(double value);  // 12.34 -> "12.3", 12.02 -> "12"

// Optional parts of a shape.
struct ShapeOptions {
  std::string_view title = {};       // shown when pointed at; text
  std::string_view attributes = {};  // more of them, XML
};

std::string svg_rect(std::string_view style, const Box& box, const ShapeOptions& options = {});
std::string svg_line(std::string_view style, Point from, Point to,
                     const ShapeOptions& options = {});
std::string svg_circle(std::string_view style, Point center, double radius);
std::string svg_path(std::string_view style, std::string_view path,
                     const ShapeOptions& options = {});
// `text` on the baseline at `at`.
std::string svg_text(std::string_view style, Point at, std::string_view text,
                     std::string_view attributes = "");

// The tag that opens a picture of this size; `label` is read to those who cannot see it.
std::string svg_open(std::string_view style, double width, double height, std::string_view label,
                     std::string_view attributes = "");

}  // namespace regatta::report
