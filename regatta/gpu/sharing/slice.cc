#include "regatta/gpu/sharing/slice.h"

#include <string_view>

#include <fmt/core.h>

#include "regatta/base/core/text.h"
#include "regatta/base/core/units.h"
#include "regatta/gpu/sharing/internal/ledger/ledger.h"
#include "regatta/gpu/sharing/internal/policy/share.h"

namespace regatta::sharing {
namespace {

constexpr int kWeightMax = 10'000;

Error bad_slice(const std::string& what) {
  return {Code::kInvalidInput, what};
}

std::optional<int> whole(std::string_view text, int least, int most) {
  const auto value = parse_number<int>(text);
  return value && *value >= least && *value <= most ? value : std::nullopt;
}

// A stated limit wins over a missing one, as long as it is not higher.
template <typename T>
Status limit(std::optional<T>& asked, const std::optional<T>& most, const char* what) {
  if (!most) return {};
  if (!asked) asked = most;
  if (*asked <= *most) return {};
  return bad_slice(fmt::format("{} is more than this machine's operator allows", what));
}

}  // namespace

Status check_minimum_memory(Bytes memory) {
  constexpr Bytes kBlock{REGATTA_BLOCK_BYTES};
  if (memory >= kBlock) return {};
  return bad_slice(
      fmt::format("{} is less than one of the {} blocks in which a program gets memory; "
                  "give {}MiB or more",
                  format_bytes(memory), format_bytes(kBlock), kBlock.value >> 20));
}

Result<unsigned> parse_compute(const std::string& text) {
  const auto ratio = parse_ratio(text.find('%') == std::string::npos ? text + "%" : text);
  constexpr auto kWhole = static_cast<double>(REGATTA_WHOLE_PPM);
  if (!ratio || !(*ratio * kWhole >= 0.5) || *ratio > 1) {
    return bad_slice(fmt::format("'{}' is no percentage from 0.0001 to 100; write it like 30",
                                 printable(text, 40)));
  }
  return static_cast<unsigned>(*ratio * kWhole + 0.5);
}

Result<std::map<int, Bytes>> parse_memory(const std::string& text, std::optional<int> gpu) {
  std::map<int, Bytes> memory;
  const bool is_list = text.find('=') != std::string::npos;
  if (is_list && gpu) {
    return bad_slice(
        fmt::format("'{}' names its GPUs itself; leave --gpu out", printable(text, 40)));
  }
  for (const std::string& part : split(text, ',')) {
    const std::size_t equals = part.find('=');
    const auto number =
        is_list ? whole(part.substr(0, equals), 0, REGATTA_DEVICES_MAX - 1) : gpu.value_or(0);
    if (!number || (is_list && equals == std::string::npos)) {
      return bad_slice(fmt::format("'{}' is no GPU and its memory; write it like 0=4GiB,1=8GiB",
                                   printable(part, 40)));
    }
    REGATTA_TRY(size, parse_bytes(is_list ? part.substr(equals + 1) : part));
    if (size.value != 0) REGATTA_TRY_DO(check_minimum_memory(size));
    if (!memory.emplace(*number, size).second)
      return bad_slice(fmt::format("GPU {} is named twice; name it once", *number));
  }
  return memory;
}

Status set_limit(GpuSlice& slice, const std::string& key, const std::string& text) {
  if (key == "memory") {
    REGATTA_TRY(memory, parse_memory(text));
    slice.memory = memory;
  } else if (key == "compute") {
    REGATTA_TRY(compute, parse_compute(text));
    slice.compute_ppm = compute;
  } else if (key == "weight") {
    const auto weight = whole(text, 1, kWeightMax);
    if (!weight) {
      return bad_slice(
          fmt::format("'{}' is not a whole number from 1 to {}", printable(text, 40), kWeightMax));
    }
    slice.weight = static_cast<unsigned>(*weight);
  } else if (key == "priority") {
    if (text != "high" && text != "normal")
      return bad_slice(fmt::format("'{}' is not known; write high or normal", printable(text, 40)));
    slice.is_high_priority = text == "high";
  } else {
    return bad_slice(
        fmt::format("there is no limit '{}'; choose one of memory, compute, weight, "
                    "priority",
                    printable(key, 40)));
  }
  return {};
}

// Where one limit is stated, the others are what a tenant has by default, so that no annotation
// takes time from the other tenants.
static Status check_defaults(const GpuSlice& asked, const GpuSlice& most) {
  const bool is_limited = !most.memory.empty() || most.compute_ppm || most.weight.has_value() ||
                          most.is_high_priority.has_value();
  if (!is_limited) return {};
  std::optional<unsigned> weight = asked.weight;
  std::optional<bool> priority = asked.is_high_priority;
  REGATTA_TRY_DO(limit(weight, std::optional(most.weight.value_or(1)), "weight"));
  return limit(priority, std::optional(most.is_high_priority.value_or(false)), "priority");
}

Result<GpuSlice> restrict_slice(const GpuSlice& asked, const GpuSlice& most) {
  REGATTA_TRY_DO(check_defaults(asked, most));
  GpuSlice slice = asked;
  if (asked.memory.empty()) slice.memory = most.memory;
  for (const auto& [gpu, size] : slice.memory) {
    if (most.memory.empty()) break;
    const auto allowed = most.memory.find(gpu);
    if (allowed == most.memory.end() || size > allowed->second) {
      return bad_slice(fmt::format("{} on GPU {} is more than this machine's operator allows",
                                   format_bytes(size), gpu));
    }
  }
  REGATTA_TRY_DO(limit(slice.compute_ppm, most.compute_ppm, "compute"));
  REGATTA_TRY_DO(limit(slice.weight, most.weight, "weight"));
  REGATTA_TRY_DO(limit(slice.is_high_priority, most.is_high_priority, "priority"));
  return slice;
}

void add_to_request(nlohmann::json& request, const GpuSlice& slice) {
  for (const auto& [gpu, size] : slice.memory)
    request["memory"][std::to_string(gpu)] = size.value;
  if (slice.compute_ppm) request["compute_ppm"] = *slice.compute_ppm;
  if (slice.weight) request["weight"] = *slice.weight;
  if (slice.is_high_priority) request["priority"] = *slice.is_high_priority ? "high" : "normal";
}

}  // namespace regatta::sharing
