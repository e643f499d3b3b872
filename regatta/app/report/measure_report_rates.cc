// Rates of devices and paths.
#include <utility>
#include <vector>

#include <fmt/core.h>

#include "regatta/app/report/measure_report.h"
#include "regatta/base/core/text.h"
#include "regatta/base/core/units.h"

namespace regatta::report {
namespace {

using RateRow = std::vector<std::string>;
using workload::Precision;

// A few shapes stand for the grid: rows of tokens, columns of output x input features.
constexpr int kShownTokens[] = {64, 256, 1024};
constexpr std::pair<int, int> kShownFeatures[] = {
    {64, 64}, {256, 256}, {1024, 256}, {256, 1024}, {1024, 1024}};

std::string product_rate(const cost::DeviceRates& device, Precision precision, int m,
                         std::pair<int, int> features) {
  for (const cost::MatmulRate& rate : device.matmul) {
    if (rate.precision == precision && rate.m == m && rate.n == features.first &&
        rate.k == features.second)
      return fmt::format("{:.1f}", rate.rate.value * 1e-9);
  }
  return "-";
}

std::string products_text(const cost::DeviceRates& device, Precision precision) {
  RateRow head{fmt::format("{} tokens", workload::to_string(precision))};
  for (const auto& [n, k] : kShownFeatures)
    head.push_back(fmt::format("{} x {}", n, k));
  std::vector<RateRow> rows{head};
  for (const int m : kShownTokens) {
    RateRow row{std::to_string(m)};
    for (const auto& features : kShownFeatures)
      row.push_back(product_rate(device, precision, m, features));
    rows.push_back(row);
  }
  return format_table(rows);
}

std::string operators_text(const cost::DeviceRates& device) {
  std::vector<RateRow> rows{{"operator", "fp32", "bf16"}};
  for (const cost::PointwiseOp op : cost::kPointwiseOps) {
    RateRow row{std::string(cost::to_string(op))};
    for (const Precision precision : {Precision::kFp32, Precision::kBf16}) {
      std::string cell = "-";
      for (const cost::PointwiseRate& rate : device.pointwise) {
        if (rate.op == op && rate.precision == precision)
          cell = fmt::format("{:.3f}", rate.bandwidth.value * 1e-9);
      }
      row.push_back(cell);
    }
    rows.push_back(row);
  }
  rows.push_back({"copy", fmt::format("{:.3f}", device.copy_bandwidth.value * 1e-9), "-"});
  return format_table(rows);
}

std::string paths_text(const cost::Rates& rates) {
  std::vector<RateRow> rows{{"path", "latency", "measured", "described", "share"}};
  for (const cost::PathRates& path : rates.paths) {
    const bool inside = path.path == cost::PathClass::kSameServer;
    const auto text = [inside](BytesPerSecond rate) {
      return inside ? format_bytes_per_second(rate) : format_bits_per_second(rate);
    };
    rows.push_back({std::string(cost::to_string(path.path)), format_seconds(path.latency),
                    text(path.bandwidth), text(path.described),
                    format_percent(path.bandwidth / path.described)});
  }
  return format_table(rows);
}

}  // namespace

std::string rates_text(const std::string& cluster, const cost::Rates& rates) {
  std::string text = fmt::format("cluster {}: {}\n\n", cluster, rates.source);
  for (const auto& [name, device] : rates.devices) {
    text += fmt::format("device {}: matrix products, GFLOP/s (tokens, output x input features)\n\n",
                        name);
    text += products_text(device, Precision::kFp32) + "\n";
    text += products_text(device, Precision::kBf16) + "\n";
    text += fmt::format("device {}: operators, GB/s; launching one takes {}\n\n", name,
                        format_seconds(device.operator_overhead));
    text += operators_text(device) + "\n";
  }
  if (!rates.paths.empty()) text += "paths between two devices\n\n" + paths_text(rates);
  if (rates.shared_cores) {
    text += "\nthe devices share the cores of this machine without a fixed share: figures vary\n";
  }
  return text;
}

}  // namespace regatta::report
