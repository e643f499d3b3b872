// monitoring/metrics_text.h: writes metrics as the text that Prometheus reads. Source: Prometheus,
// Exposition formats, text format 0.0.4.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>

namespace regatta::monitoring {

inline constexpr const char* kMetricsContentType = "text/plain; version=0.0.4; charset=utf-8";

using MetricLabels = std::initializer_list<std::pair<std::string_view, std::string_view>>;

class MetricsText {
 public:
  // Begins a metric; its samples follow. `type`: gauge or counter. Each name once.
  void begin(std::string_view name, std::string_view type, std::string_view help);
  void sample(double value, MetricLabels labels = {});
  // A metric with one sample.
  void add(std::string_view name, std::string_view type, std::string_view help, double value);
  std::string take() { return std::move(text_); }

 private:
  std::string name_;
  std::string text_;
};

}  // namespace regatta::monitoring
