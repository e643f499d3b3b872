#include "regatta/app/report/internal/cluster_sizes_html.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "regatta/app/report/internal/html_text.h"
#include "regatta/base/core/units.h"

namespace regatta::report {
namespace {

using plan::ClusterSize;
using plan::ClusterSizes;

// The unit of an axis that keeps its ticks short.
struct Scale {
  double factor = 1;
  std::string_view name;
};

Scale count_scale(double most) {
  if (most >= 3e6) return {1e6, "millions"};
  if (most >= 3e3) return {1e3, "thousands"};
  return {1, ""};
}

Scale time_scale(Seconds most) {
  if (most.value >= 2 * 86400) return {86400, "days"};
  if (most.value >= 2 * 3600) return {3600, "hours"};
  if (most.value >= 120) return {60, "minutes"};
  return {1, "seconds"};
}

std::string with_scale(std::string_view what, Scale scale) {
  return scale.name.empty() ? std::string(what) : fmt::format("{}, {}", what, scale.name);
}

std::string title_of(const ClusterSize& size) {
  return fmt::format("{} devices: {:.0f} tokens/s, {}, {:.0f} device hours", size.devices,
                     size.tokens_per_s, format_duration(size.usage.time), size.usage.device_hours);
}

void dot(Chart& chart, const ClusterSize& size, std::pair<double, double> at, bool is_picked) {
  const std::string style =
      std::string("dot") + (is_picked ? " best" : "") + (size.is_optimal ? "" : " minor");
  chart.dot(at, style, title_of(size), is_picked ? std::to_string(size.devices) : "");
}

std::string throughput_chart(const ClusterSizes& sizes, std::size_t picked) {
  const ClusterSize& first = sizes.sizes.front();
  const double most_devices = sizes.sizes.back().devices;
  const double rate = first.tokens_per_s / first.devices;
  double most = rate * most_devices;
  for (const ClusterSize& size : sizes.sizes)
    most = std::max(most, size.tokens_per_s);
  const Scale scale = count_scale(most);
  const std::string title = with_scale("Tokens/s", scale);
  Chart chart({.title = title,
               .x_label = "devices; dashed: linear from the smallest",
               .x_most = most_devices,
               .y_most = most / scale.factor,
               .y_decimals = tick_decimals(most / scale.factor)});
  chart.line({{0, 0}, {most_devices, rate * most_devices / scale.factor}}, "guide");
  for (std::size_t i = 0; i < sizes.sizes.size(); ++i) {
    const ClusterSize& size = sizes.sizes[i];
    dot(chart, size, {size.devices, size.tokens_per_s / scale.factor}, i == picked);
  }
  return chart.html();
}

std::string cost_chart(const ClusterSizes& sizes, std::size_t picked) {
  Seconds longest;
  double most = 0;
  for (const ClusterSize& size : sizes.sizes) {
    longest = std::max(longest, size.usage.time);
    most = std::max(most, size.usage.device_hours);
  }
  const Scale x = time_scale(longest);
  const Scale y = count_scale(most);
  const std::string title = with_scale("Device hours", y);
  const std::string label =
      fmt::format("{} of {}", x.name, sizes.steps > 0 ? "the job" : "a billion tokens");
  Chart chart({.title = title,
               .x_label = label,
               .x_most = longest.value / x.factor,
               .y_most = most / y.factor,
               .x_decimals = tick_decimals(longest.value / x.factor),
               .y_decimals = tick_decimals(most / y.factor)});
  for (std::size_t i = 0; i < sizes.sizes.size(); ++i) {
    const ClusterSize& size = sizes.sizes[i];
    dot(chart, size, {size.usage.time.value / x.factor, size.usage.device_hours / y.factor},
        i == picked);
  }
  return chart.html();
}

}  // namespace

std::string cluster_sizes_section(const ClusterSizes& sizes, std::size_t picked) {
  const std::string hint = fmt::format(
      "The fastest plan on {} to {} devices; this page is about {}. A large dot: no other size is "
      "both faster and cheaper.",
      sizes.sizes.front().devices, sizes.sizes.back().devices, sizes.sizes[picked].devices);
  return section("How many devices", hint,
                 "<div class=\"pair\">\n<div>" + throughput_chart(sizes, picked) + "</div>\n<div>" +
                     cost_chart(sizes, picked) + "</div>\n</div>\n");
}

}  // namespace regatta::report
