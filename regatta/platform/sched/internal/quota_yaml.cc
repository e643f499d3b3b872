#include "regatta/platform/sched/internal/quota_yaml.h"

#include <array>
#include <cmath>
#include <cstddef>
#include <optional>

#include "regatta/base/core/ids.h"

namespace regatta::sched {
namespace {

constexpr double kThousandths = 1000;  // an amount in thousandths, of one
constexpr double kMebibyte = 0x1p20;
// Agents are heard once a second: below two of them each lost message would end jobs.
constexpr NumberRange kLeases{.low = 2, .high = 86400};

struct ResourceKey {
  const char* name;
  bool is_memory;
};

// By Resource.
constexpr std::array<ResourceKey, kResources> kResourceKeys = {
    {{"gpus", false}, {"gpu_memory", true}, {"cpus", false}, {"memory", true}, {"nics", false}}};

// Nothing where the map does not name the resource.
std::optional<long long> read_amount(const YamlMap& map, const ResourceKey& key) {
  constexpr auto kMost = static_cast<double>(kQuotaAmountMax);
  if (!map.has(key.name)) return std::nullopt;
  if (key.is_memory)
    return map.bytes(key.name, {}, {.low = 0, .high = kMost * kMebibyte}).value >> 20;
  const double amount = map.number_or(key.name, 0, {.low = 0, .high = kMost / kThousandths});
  return std::llround(amount * kThousandths);
}

std::array<std::optional<long long>, kResources> read_amounts_of(const YamlMap& queue,
                                                                 std::string_view key) {
  std::array<std::optional<long long>, kResources> amounts{};
  if (!queue.has(key)) return amounts;
  const YamlMap map = queue.map(key);
  std::vector<std::string> names;
  for (const ResourceKey& resource : kResourceKeys)
    names.emplace_back(resource.name);
  map.allow(names);
  for (int r = 0; r < kResources; ++r)
    at(amounts, r) = read_amount(map, at(kResourceKeys, r));
  return amounts;
}

// Quotas of a device type count whole devices.
std::optional<long long> read_whole_devices(const YamlMap& map, std::string_view key) {
  constexpr auto kMost = kQuotaAmountMax / static_cast<long long>(kThousandths);
  if (!map.has(key)) return std::nullopt;
  return map.long_integer_or(key, 0, {0, kMost}) * static_cast<long long>(kThousandths);
}

std::vector<DeviceTypeQuota> read_device_types(const YamlMap& queue) {
  std::vector<DeviceTypeQuota> quotas;
  if (!queue.has("device_types")) return quotas;
  const YamlMap types = queue.map("device_types");
  for (const std::string& type : types.keys()) {
    const YamlMap map = types.map(type);
    map.allow({"guaranteed", "limit", "user_limit"});
    quotas.push_back({.type = type,
                      .guaranteed = read_whole_devices(map, "guaranteed").value_or(0),
                      .limit = read_whole_devices(map, "limit"),
                      .user_limit = read_whole_devices(map, "user_limit")});
  }
  return quotas;
}

Seconds read_lease(const YamlMap& map) {
  if (!map.has("lease")) return {};
  return map.text("lease", "") == "never" ? kLeaseNever : map.seconds_or("lease", {}, kLeases);
}

QuotaQueue read_queue(const YamlMap& map) {
  map.allow(
      {"name", "parent", "weight", "guaranteed", "limit", "user_limit", "device_types", "lease"});
  QuotaQueue queue;
  queue.name = map.text("name");
  queue.parent = map.text("parent", "");
  queue.weight = map.number_or("weight", 1, {.low = 1 / kQuotaWeightMax, .high = kQuotaWeightMax});
  const auto guaranteed = read_amounts_of(map, "guaranteed");
  for (int r = 0; r < kResources; ++r)
    at(queue.guaranteed.of, r) = at(guaranteed, r).value_or(0);
  queue.limit = read_amounts_of(map, "limit");
  queue.user_limit = read_amounts_of(map, "user_limit");
  queue.device_types = read_device_types(map);
  queue.lease = read_lease(map);
  return queue;
}

}  // namespace

std::vector<QuotaQueue> read_queues(const YamlMap& root, std::string_view key) {
  std::vector<QuotaQueue> queues;
  for (const YamlMap& map : root.maps(key))
    queues.push_back(read_queue(map));
  return queues;
}

}  // namespace regatta::sched
