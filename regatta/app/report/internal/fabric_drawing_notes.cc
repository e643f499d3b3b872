#include <algorithm>
#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "regatta/app/report/internal/fabric_drawing.h"
#include "regatta/app/report/internal/fabric_drawing_plan.h"
#include "regatta/base/core/units.h"
#include "regatta/model/topo/fabric_summary.h"
#include "regatta/model/topo/presets.h"

namespace regatta::report {
namespace {

using topo::FabricSummary;
using topo::NodeKind;

constexpr double kLine = 15.5;
constexpr double kWidest = 186;  // left of the fabric
constexpr int kRailsNamed = 16;

// "400 Gbps", or "100 Gbps to 400 Gbps"; empty without a cable.
std::string rates_of(const FabricDrawing& picture, NodeKind lower) {
  BytesPerSecond least;
  BytesPerSecond most;
  for (const topo::Link& link : picture.graph.links) {
    if (picture.graph.nodes[link.a.index()].kind != lower) continue;
    if (least.value <= 0 || link.rate < least) least = link.rate;
    most = std::max(most, link.rate);
  }
  if (least == most) return format_bits_per_second(most);
  return format_bits_per_second(least) + " to " + format_bits_per_second(most);
}

std::string oversubscription(double ratio) {
  return ratio <= 1 ? "no oversubscription" : fmt::format("{:.2f} to 1 oversubscribed", ratio);
}

// Lines of small text, the first baseline at `at`.
std::string lines_svg(Point at, const std::vector<std::string>& lines) {
  std::string svg;
  for (const std::string& line : lines) {
    svg += text_svg(at, {12, "soft"}, fit_text(line, 12, kWidest));
    at.y += kLine;
  }
  return svg;
}

std::string row_svg(Point at, std::string_view name, std::string_view detail) {
  std::string svg = text_svg(at, {14, "tier"}, name);
  return detail.empty() ? svg : svg + text_svg({at.x, at.y + kLine}, {12, "soft"}, detail);
}

// Between the rows whose boxes end at `low` and start at `high`.
std::string between_svg(Point at, double low, std::vector<std::string> lines,
                        std::size_t cables_of_line) {
  if (cables_of_line > 1) lines.push_back(fmt::format("a line: {} cables", cables_of_line));
  // The row above ends in a line of its own.
  const double room = low - at.y - kLine;
  const double first =
      at.y + kLine + (room - kLine * static_cast<double>(lines.size())) / 2 + 0.7 * kLine;
  return lines_svg({at.x, first}, lines);
}

std::vector<std::string> cables_text(int cables, const std::string& rate) {
  return {pluralized(cables, "cable", "cables"), rate + (cables == 1 ? "" : " each")};
}

std::string super_notes(const FabricDrawing& picture, const FabricSummary& fabric, double x) {
  const FabricLayout& layout = picture.layout;
  const int columns = picture.cluster.fabric.spines;
  const double middle = layout.switch_height / 2 + 4;
  std::string svg = row_svg({x, layout.supers_y + middle},
                            pluralized(fabric.super_spines, "super-spine", "super-spines"),
                            pluralized(columns, "column", "columns") +
                                fmt::format(" of {}", fabric.super_spines / columns));
  std::vector<std::string> lines =
      cables_text(fabric.spine_uplinks, rates_of(picture, NodeKind::kSpine));
  lines.push_back(oversubscription(fabric.spine_oversubscription));
  return svg + between_svg({x, layout.supers_y + layout.switch_height}, layout.spines_y, lines,
                           cables_of_line(picture, NodeKind::kSpine));
}

std::string spine_notes(const FabricDrawing& picture, const FabricSummary& fabric, double x) {
  const FabricLayout& layout = picture.layout;
  const double middle = layout.switch_height / 2 + 4;
  std::string svg =
      row_svg({x, layout.spines_y + middle}, pluralized(fabric.spines, "spine", "spines"),
              fabric.groups > 1 ? pluralized(fabric.groups, "group", "groups") : "");
  std::vector<std::string> lines =
      cables_text(fabric.leaf_uplinks, rates_of(picture, NodeKind::kLeaf));
  lines.push_back(oversubscription(fabric.leaf_oversubscription));
  return svg + between_svg({x, layout.spines_y + layout.switch_height}, layout.leaves_y, lines,
                           cables_of_line(picture, NodeKind::kLeaf));
}

std::string server_notes(const FabricDrawing& picture, const FabricSummary& fabric, double x) {
  const FabricLayout& layout = picture.layout;
  const std::vector<std::string> cables =
      fabric.server_links == 0
          ? std::vector<std::string>{}
          : cables_text(fabric.server_links, rates_of(picture, NodeKind::kServer));
  const bool fan = layout.detail == FabricDetail::kCables && fabric.tiers > 0;
  std::string svg;
  if (fan)
    svg = between_svg({x, layout.leaves_y + layout.switch_height}, layout.servers_y, cables, 1);
  svg += row_svg(
      {x, layout.servers_y + 18}, pluralized(fabric.servers, "server", "servers"),
      pluralized(fabric.devices, "device", "devices") +
          (fabric.domains > 0 ? ", " + pluralized(fabric.domains, "domain", "domains") : ""));
  return fan ? svg : svg + lines_svg({x, layout.servers_y + 18 + 2 * kLine}, cables);
}

// A symbol and its text; wraps at `right`.
class Legend {
 public:
  Legend(Point corner, double right) : at_(corner), left_(corner.x), right_(right) {}

  // Where a symbol `width` wide goes, its text after it.
  Point next(double width, const std::string& text) {
    const double space = width > 0 ? 6 : 0;
    const double whole = width + space + text_width(text, 12);
    if (at_.x > left_ && at_.x + whole > right_) new_line();
    const Point symbol = at_;
    svg_ += text_svg({at_.x + width + space, at_.y + 4}, {12, "soft"}, text);
    at_.x += whole + 18;
    return symbol;
  }
  void add(const std::string& svg) { svg_ += svg; }
  void new_line() {
    if (at_.x > left_) at_ = {left_, at_.y + 22};
  }
  double bottom() const { return at_.y; }
  const std::string& svg() const { return svg_; }

 private:
  Point at_;
  double left_;
  double right_;
  std::string svg_;
};

std::string type_text(const topo::ServerType& type, int count) {
  const topo::DeviceType& device = type.device;
  std::string text = fmt::format("{} x {}: {} x {}", count, fit_text(type.name, 12, 260),
                                 type.device_count, device.name);
  if (device.cpu_share > 0)
    text += fmt::format(" of {} of a core", format_percent(device.cpu_share));
  const FlopsPerSecond peak = device.bf16_peak.value > 0 ? device.bf16_peak : device.fp32_peak;
  text += fmt::format(", {}, {} peak {}", format_bytes(device.memory),
                      device.bf16_peak.value > 0 ? "bf16" : "fp32",
                      format_flops_per_second(peak * topo::described_share(device)));
  text += fmt::format("; {} {}", topo::to_string(type.intra.kind),
                      format_bytes_per_second(type.intra.bandwidth));
  if (type.nic_count == 0) return text;
  return text + fmt::format("; {} of {}", pluralized(type.nic_count, "NIC", "NICs"),
                            format_bits_per_second(type.nic_rate));
}

bool has_nics(const FabricDrawing& picture) {
  return std::any_of(picture.types.begin(), picture.types.end(), [&picture](const auto& type) {
    return picture.cluster.server_types.at(type.first).nic_count > 0;
  });
}

void add_rails(const FabricDrawing& picture, Legend& legend) {
  const int rails = picture.cluster.fabric.rails;
  if (rails <= 1 && has_nics(picture)) {
    const Point at = legend.next(10, "NIC");
    legend.add(dot_svg({at.x + 5, at.y}, 4.2, ""));
  }
  for (int rail = 0; rails > 1 && rail < std::min(rails, kRailsNamed); ++rail) {
    const Point at = legend.next(10, fmt::format("rail {}", rail));
    legend.add(dot_svg({at.x + 5, at.y}, 4.2, rail_style(picture, rail)));
  }
  if (rails > kRailsNamed) legend.next(0, fmt::format("... {} rails", rails));
}

void add_widths(const FabricDrawing& picture, Legend& legend) {
  std::map<BytesPerSecond, bool> rates;
  for (const topo::Link& link : picture.graph.links)
    rates[link.rate] = true;
  for (const auto& [rate, used] : rates) {
    const Point at = legend.next(26, format_bits_per_second(rate));
    legend.add(line_svg({at.x + 2, at.y}, {at.x + 24, at.y}, cable_width(picture, rate), "", ""));
  }
}

}  // namespace

std::string heading_svg(const FabricDrawing& picture, Point corner) {
  const FabricSummary fabric = topo::summarize_fabric(picture.cluster, picture.graph);
  std::string text = pluralized(fabric.servers, "server", "servers") + ", " +
                     pluralized(fabric.devices, "device", "devices");
  if (fabric.tiers > 0) {
    text += ", " + pluralized(fabric.tiers, "tier", "tiers") + " of switches, " +
            pluralized(fabric.rails, "rail", "rails") +
            (fabric.planes > 1 ? fmt::format(", {} planes", fabric.planes) : "") +
            "; bisection bandwidth " + format_bits_per_second(fabric.bisection) +
            " in each direction";
  }
  return text_svg({corner.x, corner.y + 22}, {22, "title"}, picture.cluster.name) +
         text_svg({corner.x, corner.y + 43}, {13, "soft"}, text);
}

std::string tier_notes_svg(const FabricDrawing& picture, double x) {
  const FabricSummary fabric = topo::summarize_fabric(picture.cluster, picture.graph);
  const FabricLayout& layout = picture.layout;
  std::string svg;
  if (fabric.tiers >= 3) svg += super_notes(picture, fabric, x);
  if (fabric.tiers >= 2) svg += spine_notes(picture, fabric, x);
  if (fabric.tiers >= 1) {
    svg += row_svg({x, layout.leaves_y + layout.switch_height / 2 + 4},
                   pluralized(fabric.leaves, "leaf", "leaves"),
                   fabric.rails > 1 ? pluralized(fabric.rails, "rail", "rails") : "");
  }
  return svg + server_notes(picture, fabric, x);
}

std::string legend_svg(const FabricDrawing& picture, double right, Point& corner) {
  Legend legend({corner.x, corner.y + 8}, right);
  if (picture.layout.detail != FabricDetail::kCounts || picture.cluster.fabric.rails > 1)
    add_rails(picture, legend);
  add_widths(picture, legend);
  if (!picture.domains.empty() && picture.layout.detail != FabricDetail::kCounts) {
    const Point at = legend.next(14, "servers of a scale-up domain");
    legend.add(box_svg({at.x, at.y - 6, 14, 12}, "domain", 3));
  }
  if (has_rails(picture.layout.detail))
    legend.next(0, "each dot on a line: a NIC with a cable of its own to the leaf");
  legend.new_line();
  std::map<std::string, int> counts;
  for (const topo::Server& server : picture.cluster.servers)
    ++counts[server.type];
  for (const auto& [name, count] : counts) {
    const std::string text = fit_text(type_text(picture.cluster.server_types.at(name), count), 12,
                                      right - corner.x - 18);
    const Point at = legend.next(12, text);
    legend.add(box_svg({at.x, at.y - 6, 12, 12}, type_style(picture, name), 2));
    legend.new_line();
  }
  corner.y = legend.bottom();
  return legend.svg();
}

}  // namespace regatta::report
