#include "regatta/base/core/json_line.h"

#include <cmath>
#include <cstdlib>
#include <utility>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

namespace regatta {
namespace {

// By its text: the nearest number that is printed so.
double rounded(double number) {
  if (!std::isfinite(number)) return number;
  const std::string text =
      std::abs(number) < 1000 ? fmt::format("{:.6g}", number) : fmt::format("{:.3f}", number);
  return std::strtod(text.c_str(), nullptr);
}

void round_all(nlohmann::json& value) {
  if (value.is_number_float()) value = rounded(value.get<double>());
  if (value.is_structured())
    for (nlohmann::json& part : value)
      round_all(part);
}

}  // namespace

std::string json_line(nlohmann::json value) {
  round_all(value);
  return value.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace regatta
