#include "regatta/app/report/internal/page_fault.h"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "regatta/base/core/text.h"

namespace regatta::report {
namespace {

// One line of text is at most so high, in pixels.
constexpr double kLineHeight = 12;

std::optional<double> number_of(std::string_view tag, std::string_view attribute) {
  const std::string before = " " + std::string(attribute) + "=\"";
  const std::size_t at = tag.find(before);
  if (at == std::string_view::npos) return std::nullopt;
  const std::size_t begin = at + before.size();
  return parse_number<double>(tag.substr(begin, tag.find('"', begin) - begin));
}

// Width and height of the drawing that is open.
struct ViewBox {
  double width = 0;
  double height = 0;

  bool holds(std::string_view tag) const {
    const double x = number_of(tag, "x").value_or(0);
    const double y = number_of(tag, "y").value_or(0);
    const bool is_text = tag.starts_with("text");
    const double right = x + number_of(tag, "width").value_or(0);
    const double bottom = y + number_of(tag, "height").value_or(0);
    if (is_text && tag.find("transform") == std::string_view::npos && y < kLineHeight - 2)
      return false;
    constexpr double kRounding = 0.2;
    return x >= 0 && y >= -kRounding && right <= width + kRounding && bottom <= height + kRounding;
  }
};

std::optional<ViewBox> view_box_of(std::string_view tag) {
  constexpr std::string_view kBefore = "viewBox=\"0 0 ";
  const std::size_t at = tag.find(kBefore);
  if (at == std::string_view::npos || tag.find("aria-label=\"") == std::string_view::npos)
    return std::nullopt;
  const std::string_view sizes = tag.substr(at + kBefore.size());
  const std::size_t space = sizes.find(' ');
  const auto width = parse_number<double>(sizes.substr(0, space));
  const auto height = parse_number<double>(sizes.substr(space + 1, sizes.find('"') - space - 1));
  if (!width || !height) return std::nullopt;
  return ViewBox{*width, *height};
}

// Every element that opens also closes, in order; what HTML lets stand alone is skipped. Style,
// script and void elements hold no markup of ours.
std::string first_broken_tag(std::string_view html) {
  std::vector<std::string> open;
  std::optional<ViewBox> box;
  for (std::size_t at = html.find('<'); at != std::string_view::npos; at = html.find('<', at + 1)) {
    const std::size_t end = html.find('>', at);
    if (end == std::string_view::npos) return std::string(html.substr(at, 40));
    const std::string_view tag = html.substr(at + 1, end - at - 1);
    const std::string name(tag.substr(0, tag.find_first_of(" /", 1)));
    if (name == "svg" && !(box = view_box_of(tag))) return std::string(tag);
    if (box && (name == "rect" || name == "text") && !box->holds(tag)) return std::string(tag);
    if (tag.front() == '!' || tag.back() == '/' || name == "meta") continue;
    if (tag.front() == '/') {
      if (open.empty() || "/" + open.back() != tag) return std::string(tag);
      open.pop_back();
      continue;
    }
    open.push_back(name);
    if (name == "style" || name == "script") at = html.find("</" + name, at) - 1;
  }
  return open.empty() ? "" : open.back();
}

}  // namespace

std::size_t count(std::string_view text, std::string_view part) {
  std::size_t found = 0;
  for (std::size_t at = text.find(part); at != std::string_view::npos;
       at = text.find(part, at + part.size()))
    ++found;
  return found;
}

std::string page_fault(std::string_view html) {
  for (const std::string_view once : {"<h1>", "<header>", "<footer>", "<style>", "<script>"})
    if (count(html, once) != 1) return std::string(once);
  for (const std::string_view outside :
       {"http", "src=", "href=", "<link", "url(", "@import", "fetch(", "<iframe", "<img"})
    if (count(html, outside) != 0) return std::string(outside);
  return first_broken_tag(html);
}

}  // namespace regatta::report
