#include "regatta/app/report/internal/svg.h"

#include <string>
#include <string_view>

#include <fmt/format.h>

#include "regatta/app/report/internal/html_text.h"
#include "regatta/base/core/text.h"

namespace regatta::report {
namespace {

std::string class_of(std::string_view style) {
  return style.empty() ? "" : fmt::format(" class=\"{}\"", style);
}

// `head` is the tag up to its own attributes.
std::string shape(std::string_view name, const std::string& head, const ShapeOptions& options) {
  std::string svg = "<" + head;
  if (!options.attributes.empty()) svg.append(" ").append(options.attributes);
  if (options.title.empty()) return svg + "/>\n";
  return svg + fmt::format("><title>{}</title></{}>\n", xml_text(options.title), name);
}

}  // namespace

std::string xml_text(std::string_view text) {
  constexpr std::size_t kLongest = 400;
  return escape_html(printable(text, kLongest));
}

std::string svg_number(double value) {
  std::string text = fmt::format("{:.1f}", value);
  if (text.ends_with(".0")) text.resize(text.size() - 2);
  return text == "-0" ? "0" : text;
}

std::string svg_rect(std::string_view style, const Box& box, const ShapeOptions& options) {
  return shape("rect",
               fmt::format("rect{} x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\"", class_of(style),
                           svg_number(box.x), svg_number(box.y), svg_number(box.width),
                           svg_number(box.height)),
               options);
}

std::string svg_line(std::string_view style, Point from, Point to, const ShapeOptions& options) {
  return shape(
      "line",
      fmt::format("line{} x1=\"{}\" y1=\"{}\" x2=\"{}\" y2=\"{}\"", class_of(style),
                  svg_number(from.x), svg_number(from.y), svg_number(to.x), svg_number(to.y)),
      options);
}

std::string svg_circle(std::string_view style, Point center, double radius) {
  return fmt::format("<circle{} cx=\"{}\" cy=\"{}\" r=\"{}\"/>\n", class_of(style),
                     svg_number(center.x), svg_number(center.y), svg_number(radius));
}

std::string svg_path(std::string_view style, std::string_view path, const ShapeOptions& options) {
  return shape("path", fmt::format("path{} d=\"{}\"", class_of(style), path), options);
}

std::string svg_text(std::string_view style, Point at, std::string_view text,
                     std::string_view attributes) {
  return fmt::format("<text{} x=\"{}\" y=\"{}\"{}{}>{}</text>\n", class_of(style), svg_number(at.x),
                     svg_number(at.y), attributes.empty() ? "" : " ", attributes, xml_text(text));
}

std::string svg_open(std::string_view style, double width, double height, std::string_view label,
                     std::string_view attributes) {
  return fmt::format(
      "<svg class=\"{}\" viewBox=\"0 0 {} {}\" role=\"img\" aria-label=\"{}\"{}{}>\n", style,
      svg_number(width), svg_number(height), xml_text(label), attributes.empty() ? "" : " ",
      attributes);
}

}  // namespace regatta::report
