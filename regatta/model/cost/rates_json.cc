#include <array>
#include <string>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "regatta/base/core/json.h"
#include "regatta/model/cost/rates.h"

namespace regatta::cost {
namespace {

using nlohmann::json;

constexpr int kVersion = 1;
constexpr std::array kMeasuredPrecisions = {workload::Precision::kFp32, workload::Precision::kBf16};

json to_json(const DeviceRates& device) {
  json products = json::array();
  for (const MatmulRate& rate : device.matmul) {
    products.push_back({{"m", rate.m},
                        {"n", rate.n},
                        {"k", rate.k},
                        {"precision", workload::to_string(rate.precision)},
                        {"rate_flops", rate.rate.value}});
  }
  json pointwise = json::array();
  for (const PointwiseRate& rate : device.pointwise) {
    pointwise.push_back({{"op", to_string(rate.op)},
                         {"precision", workload::to_string(rate.precision)},
                         {"bandwidth_Bps", rate.bandwidth.value}});
  }
  json object = {{"matmul", products},
                 {"pointwise", pointwise},
                 {"copy_bandwidth_Bps", device.copy_bandwidth.value},
                 {"pointwise_bandwidth_Bps", device.pointwise_bandwidth.value},
                 {"operator_overhead_s", device.operator_overhead.value}};
  // Left out when it is not known, as in the file that it came from: 0 would be refused.
  if (device.described.value > 0) object["described_flops"] = device.described.value;
  return object;
}

constexpr IntRange kSize{1, 1'000'000'000};

MatmulRate read_product(const JsonReader& reader) {
  MatmulRate rate;
  reader.read("m", rate.m, kSize);
  reader.read("n", rate.n, kSize);
  reader.read("k", rate.k, kSize);
  reader.read("precision", rate.precision, kMeasuredPrecisions);
  reader.read("rate_flops", rate.rate, kPositive);
  return rate;
}

PointwiseRate read_pointwise(const JsonReader& reader) {
  PointwiseRate rate;
  reader.read("op", rate.op, kPointwiseOps);
  reader.read("precision", rate.precision, kMeasuredPrecisions);
  reader.read("bandwidth_Bps", rate.bandwidth, kPositive);
  return rate;
}

DeviceRates read_device(const JsonReader& reader) {
  DeviceRates device;
  for (const JsonReader& product : reader.at("matmul").items())
    device.matmul.push_back(read_product(product));
  if (device.matmul.empty()) reader.at("matmul").fail("empty; at least one product is needed");
  for (const JsonReader& pointwise : reader.at("pointwise").items())
    device.pointwise.push_back(read_pointwise(pointwise));
  reader.read("copy_bandwidth_Bps", device.copy_bandwidth, kPositive);
  reader.read("pointwise_bandwidth_Bps", device.pointwise_bandwidth, kPositive);
  reader.read("operator_overhead_s", device.operator_overhead, kPositive);
  reader.read_if("described_flops", device.described, kPositive);  // older files lack it
  return device;
}

PathRates read_path(const JsonReader& reader) {
  PathRates path;
  reader.read("path", path.path, kPathClasses);
  reader.read("latency_s", path.latency, kPositive);
  reader.read("bandwidth_Bps", path.bandwidth, kPositive);
  reader.read("described_Bps", path.described, kPositive);
  return path;
}

Result<Rates> read_rates(std::string_view text, const std::string& name) {
  REGATTA_TRY(root, JsonReader::parse(text, name));
  const int version = root.at("version").as<int>();
  if (version != kVersion) root.at("version").fail(fmt::format("{} is not {}", version, kVersion));
  Rates rates;
  root.read("source", rates.source);
  root.read("shared_cores", rates.shared_cores);
  for (const auto& [type, device] : root.at("devices").members())
    rates.devices.emplace(type, read_device(device));
  for (const JsonReader& path : root.at("paths").items())
    rates.paths.push_back(read_path(path));
  return root.finish(std::move(rates));
}

}  // namespace

std::string rates_to_json(const Rates& rates) {
  json devices = json::object();
  for (const auto& [name, device] : rates.devices)
    devices[name] = to_json(device);
  json paths = json::array();
  for (const PathRates& path : rates.paths) {
    paths.push_back({{"path", to_string(path.path)},
                     {"latency_s", path.latency.value},
                     {"bandwidth_Bps", path.bandwidth.value},
                     {"described_Bps", path.described.value}});
  }
  const json document = {{"version", kVersion},
                         {"source", rates.source},
                         {"shared_cores", rates.shared_cores},
                         {"devices", devices},
                         {"paths", paths}};
  return document.dump(2) + "\n";
}

Result<Rates> parse_rates(std::string_view text, const std::string& name) {
  Result<Rates> rates = read_rates(text, name);
  if (rates) return rates;
  return Error{rates.error().code, rates.error().message + "; run `regatta measure` again"};
}

}  // namespace regatta::cost
