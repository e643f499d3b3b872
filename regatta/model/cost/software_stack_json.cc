// The file CLUSTER.calibrated.json.
#include <array>
#include <cstddef>
#include <string>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "regatta/base/core/json.h"
#include "regatta/model/cost/software_stack.h"

namespace regatta::cost {
namespace {

using nlohmann::json;

constexpr int kCalibrationVersion = 1;

// Physical limits; a fit stays within narrower ones.
NumberRange range_of(StackScalar scalar) {
  constexpr double kMostDepth = 1e5;
  switch (scalar) {
    case StackScalar::kMatrixEfficiency:
    case StackScalar::kMemoryEfficiency:
    case StackScalar::kLinkEfficiency:
    case StackScalar::kNetworkEfficiency:
      return {.low = kPositive.low, .high = 1};
    case StackScalar::kTileDepth:
      return {.low = 0, .high = kMostDepth};
    case StackScalar::kLaunch:
    case StackScalar::kCollectiveLatency:
    case StackScalar::kMisalignment:
    case StackScalar::kExpertsSync:
    case StackScalar::kTpOverlap:
    case StackScalar::kPpOverlap:
    case StackScalar::kDpOverlap:
    case StackScalar::kEpOverlap:
      return {.low = 0, .high = 1};
  }
  return {};
}

json own_runs_to_json(const OwnRuns& own) {
  return {{"runs", own.count}, {"low", own.range.low}, {"high", own.range.high}};
}

OwnRuns read_own_runs(const JsonReader& root, const char* key) {
  OwnRuns own;
  if (!root.has(key)) return own;
  const JsonReader reader = root.at(key);
  reader.read("runs", own.count, IntRange{.low = 1, .high = 1'000'000});
  reader.read("low", own.range.low, NumberRange{.low = kPositive.low, .high = 1});
  reader.read("high", own.range.high, NumberRange{.low = 1, .high = 1e6});
  return own;
}

Result<StackCalibration> read_calibration(std::string_view text, const std::string& name) {
  REGATTA_TRY(root, JsonReader::parse(text, name));
  const int version = root.at("version").as<int>();
  if (version != kCalibrationVersion)
    root.at("version").fail(fmt::format("{} is not {}", version, kCalibrationVersion));
  StackCalibration calibration;
  const JsonReader stack = root.at("stack");
  calibration.stack = stack.as<std::string>();
  if (root.status() && find_software_stack(calibration.stack) == nullptr)
    stack.fail(fmt::format("there is no software stack '{}'", printable(calibration.stack, 40)));
  root.read("device", calibration.device);
  root.read("source", calibration.source);
  const std::array<StackScalar, kStackScalarCount> all = all_stack_scalars();
  const JsonReader scalars = root.at("scalars");
  for (std::size_t i = 0; i < all.size(); ++i)
    scalars.read(to_string(all[i]), calibration.values[i], range_of(all[i]));
  for (const JsonReader& fitted : root.at("fitted").items())
    calibration.fitted.push_back(fitted.as<StackScalar>(all));
  const JsonReader error = root.at("error");
  error.read("before", calibration.error_before, kNotNegative);
  error.read("after", calibration.error_after, kNotNegative);
  error.read("left_out", calibration.error_left_out, kNotNegative);
  calibration.dense = read_own_runs(root, "dense");
  calibration.experts = read_own_runs(root, "experts");
  if (root.status() && calibration.runs() == 0)
    root.fail("neither \"dense\" nor \"experts\" has runs");
  return root.finish(std::move(calibration));
}

}  // namespace

std::string stack_calibration_to_json(const StackCalibration& calibration) {
  json scalars = json::object();
  for (const StackScalar scalar : all_stack_scalars())
    scalars[to_string(scalar)] = calibration.values[static_cast<std::size_t>(scalar)];
  json fitted = json::array();
  for (const StackScalar scalar : calibration.fitted)
    fitted.push_back(to_string(scalar));
  json document = {{"version", kCalibrationVersion},
                   {"stack", calibration.stack},
                   {"device", calibration.device},
                   {"source", calibration.source},
                   {"scalars", scalars},
                   {"fitted", fitted},
                   {"error",
                    {{"before", calibration.error_before},
                     {"after", calibration.error_after},
                     {"left_out", calibration.error_left_out}}}};
  if (calibration.dense.count > 0) document["dense"] = own_runs_to_json(calibration.dense);
  if (calibration.experts.count > 0) document["experts"] = own_runs_to_json(calibration.experts);
  return document.dump(2) + "\n";
}

Result<StackCalibration> parse_stack_calibration(std::string_view text, const std::string& name) {
  Result<StackCalibration> calibration = read_calibration(text, name);
  if (calibration) return calibration;
  return Error{calibration.error().code,
               calibration.error().message + "; run `regatta plan calibrate` again"};
}

}  // namespace regatta::cost
