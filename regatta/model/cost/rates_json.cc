#include <cmath>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "regatta/model/cost/rates.h"

namespace regatta::cost {
namespace {

using nlohmann::json;

constexpr int kVersion = 1;
constexpr PathClass kPathClasses[] = {PathClass::kSameServer, PathClass::kSameLeaf,
                                      PathClass::kSameGroup, PathClass::kSuperSpine};

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

// A JSON object with the words that lead to it, for messages.
struct Node {
  const json& value;
  std::string where;

  Error error(const std::string& problem) const {
    return {Code::kInvalidInput, where + ": " + problem + "; run `regatta measure` again"};
  }
  Result<const json*> at(const char* key) const {
    if (!value.is_object()) return error("not an object");
    const auto found = value.find(key);
    if (found == value.end()) return error(std::string("key \"") + key + "\" is missing");
    return &*found;
  }
  Result<double> positive(const char* key) const {
    REGATTA_TRY(found, at(key));
    if (!found->is_number() || !(found->get<double>() > 0) || !std::isfinite(found->get<double>()))
      return error(std::string("\"") + key + "\" is not a positive number");
    return found->get<double>();
  }
  Result<int> positive_int(const char* key) const {
    REGATTA_TRY(number, positive(key));
    if (number > 1e9 || number != std::floor(number))
      return error(std::string("\"") + key + "\" is not a whole number");
    return static_cast<int>(number);
  }
  Result<std::string> text(const char* key) const {
    REGATTA_TRY(found, at(key));
    if (!found->is_string()) return error(std::string("\"") + key + "\" is not a text");
    return found->get<std::string>();
  }
};

Result<workload::Precision> parse_precision(const Node& node) {
  const Result<std::string> name = node.text("precision");
  if (!name) return name.error();
  if (*name == "fp32") return workload::Precision::kFp32;
  if (*name == "bf16") return workload::Precision::kBf16;
  return node.error("\"precision\" is neither fp32 nor bf16");
}

Result<MatmulRate> parse_product(const Node& node) {
  MatmulRate rate;
  REGATTA_TRY(m, node.positive_int("m"));
  REGATTA_TRY(n, node.positive_int("n"));
  REGATTA_TRY(k, node.positive_int("k"));
  REGATTA_TRY(flops, node.positive("rate_flops"));
  REGATTA_TRY(precision, parse_precision(node));
  rate.m = m;
  rate.n = n;
  rate.k = k;
  rate.rate = {flops};
  rate.precision = precision;
  return rate;
}

Result<PointwiseRate> parse_pointwise(const Node& node) {
  REGATTA_TRY(name, node.text("op"));
  REGATTA_TRY(precision, parse_precision(node));
  REGATTA_TRY(bandwidth, node.positive("bandwidth_Bps"));
  for (const PointwiseOp op : kPointwiseOps) {
    if (name == to_string(op)) return PointwiseRate{op, precision, {bandwidth}};
  }
  return node.error("operator \"" + name + "\" is not known");
}

// The rates that were measured for each shape and each operator.
Result<DeviceRates> parse_operators(const Node& node) {
  DeviceRates device;
  REGATTA_TRY(products, node.at("matmul"));
  if (!products->is_array() || products->empty())
    return node.error("\"matmul\" is not a list of at least one product");
  for (const json& product : *products) {
    REGATTA_TRY(rate, parse_product({product, node.where + ", matmul"}));
    device.matmul.push_back(rate);
  }
  REGATTA_TRY(pointwise_rates, node.at("pointwise"));
  if (!pointwise_rates->is_array()) return node.error("\"pointwise\" is not a list");
  for (const json& value : *pointwise_rates) {
    REGATTA_TRY(rate, parse_pointwise({value, node.where + ", pointwise"}));
    device.pointwise.push_back(rate);
  }
  return device;
}

Result<DeviceRates> parse_device(const Node& node) {
  REGATTA_TRY(device, parse_operators(node));
  REGATTA_TRY(copy, node.positive("copy_bandwidth_Bps"));
  REGATTA_TRY(pointwise, node.positive("pointwise_bandwidth_Bps"));
  REGATTA_TRY(overhead, node.positive("operator_overhead_s"));
  device.copy_bandwidth = {copy};
  device.pointwise_bandwidth = {pointwise};
  device.operator_overhead = {overhead};
  // Older files do not say what was measured.
  if (node.value.contains("described_flops")) {
    REGATTA_TRY(described, node.positive("described_flops"));
    device.described = {described};
  }
  return device;
}

Result<PathRates> parse_path(const Node& node) {
  PathRates path;
  REGATTA_TRY(name, node.text("path"));
  bool known = false;
  for (const PathClass one : kPathClasses) {
    if (name != to_string(one)) continue;
    path.path = one;
    known = true;
  }
  if (!known) return node.error("path class \"" + name + "\" is not known");
  REGATTA_TRY(latency, node.positive("latency_s"));
  REGATTA_TRY(bandwidth, node.positive("bandwidth_Bps"));
  REGATTA_TRY(described, node.positive("described_Bps"));
  path.latency = {latency};
  path.bandwidth = {bandwidth};
  path.described = {described};
  return path;
}

Result<std::map<std::string, DeviceRates>> parse_devices(const Node& root) {
  REGATTA_TRY(list, root.at("devices"));
  if (!list->is_object()) return root.error("\"devices\" is not an object");
  std::map<std::string, DeviceRates> devices;
  for (const auto& [type, value] : list->items()) {
    std::string where = root.where;
    where.append(": device ").append(type);
    REGATTA_TRY(device, parse_device({value, std::move(where)}));
    devices.emplace(type, std::move(device));
  }
  return devices;
}

Result<std::vector<PathRates>> parse_paths(const Node& root) {
  REGATTA_TRY(list, root.at("paths"));
  if (!list->is_array()) return root.error("\"paths\" is not a list");
  std::vector<PathRates> paths;
  for (const json& value : *list) {
    REGATTA_TRY(path, parse_path({value, root.where + ": paths"}));
    paths.push_back(path);
  }
  return paths;
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
  const json document = json::parse(text, nullptr, false);
  const Node root{document, name};
  if (document.is_discarded()) return root.error("not JSON");
  REGATTA_TRY(version, root.positive_int("version"));
  if (version != kVersion)
    return root.error("version " + std::to_string(version) + " is not " + std::to_string(kVersion));
  Rates rates;
  REGATTA_TRY(source, root.text("source"));
  rates.source = source;
  REGATTA_TRY(shared, root.at("shared_cores"));
  if (!shared->is_boolean()) return root.error("\"shared_cores\" is neither true nor false");
  rates.shared_cores = shared->get<bool>();
  REGATTA_TRY(devices, parse_devices(root));
  rates.devices = std::move(devices);
  REGATTA_TRY(paths, parse_paths(root));
  rates.paths = std::move(paths);
  return rates;
}

}  // namespace regatta::cost
