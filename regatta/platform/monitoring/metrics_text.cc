#include "regatta/platform/monitoring/metrics_text.h"

#include <cmath>

#include <fmt/format.h>

namespace regatta::monitoring {
namespace {

void append_label_value(std::string_view value, std::string& text) {
  for (const char letter : value) {
    if (letter == '\n') {
      text += "\\n";
      continue;
    }
    if (letter == '\\' || letter == '"') text += '\\';
    text += letter;
  }
}

}  // namespace

void MetricsText::begin(std::string_view name, std::string_view type, std::string_view help) {
  name_ = name;
  text_ += fmt::format("# HELP {0} {1}\n# TYPE {0} {2}\n", name, help, type);
}

void MetricsText::sample(double value, MetricLabels labels) {
  text_ += name_;
  char before = '{';
  for (const auto& [label, given] : labels) {
    text_ += before;
    text_ += label;
    text_ += "=\"";
    append_label_value(given, text_);
    text_ += '"';
    before = ',';
  }
  if (labels.size() > 0) text_ += '}';
  text_ += std::isnan(value) ? " NaN\n" : fmt::format(" {}\n", value);
}

void MetricsText::add(std::string_view name, std::string_view type, std::string_view help,
                      double value) {
  begin(name, type, help);
  sample(value);
}

}  // namespace regatta::monitoring
