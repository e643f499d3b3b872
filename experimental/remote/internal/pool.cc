#include "experimental/remote/internal/pool.h"

#include <algorithm>
#include <limits>
#include <tuple>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "regatta/base/core/json.h"
#include "regatta/base/core/units.h"

namespace regatta::remote {
namespace {

constexpr unsigned kWhole = 1'000'000;

long long free_bytes(const PoolDevice& device) {
  return device.memory_free ? device.memory_free->value : std::numeric_limits<long long>::max();
}

bool fits(const PoolDevice& device, const SliceRequirements& slice) {
  return free_bytes(device) >= slice.memory.value && device.compute_free_ppm >= slice.compute_ppm;
}

bool is_reachable(const PoolDevice& device, const SliceRequirements& slice) {
  return device.has_rdma || !slice.needs_rdma;
}

std::string percent(unsigned ppm) {
  return fmt::format("{:.4g} %", ppm / 1e4);
}

std::string memory_text(const PoolDevice& device) {
  return device.memory_free ? format_bytes(*device.memory_free) : "any memory";
}

// Suggests the largest slice that fits: the most memory with this share of the time or, where no
// device has that share, the largest share.
Error nothing_fits(const std::vector<PoolDevice>& devices, const SliceRequirements& slice) {
  const std::string asked = fmt::format("no GPU has {} and {} free", format_bytes(slice.memory),
                                        percent(slice.compute_ppm));
  const PoolDevice* best = nullptr;
  const auto has_time = [&](const PoolDevice& device) {
    return device.compute_free_ppm >= slice.compute_ppm;
  };
  const auto rank = [&](const PoolDevice& device) {
    return has_time(device) ? std::tuple(1, free_bytes(device), device.compute_free_ppm)
                            : std::tuple(0, static_cast<long long>(device.compute_free_ppm), 0U);
  };
  for (const PoolDevice& device : devices)
    if (is_reachable(device, slice) && (best == nullptr || rank(device) > rank(*best)))
      best = &device;
  if (best == nullptr && !devices.empty())
    return {Code::kUnsupported,
            "no server of the pool has an RDMA device at its address; name one with regatta gpu "
            "serve --rdma-address, or run with --transport tcp"};
  if (best == nullptr) return {Code::kExhausted, asked + "; there is no GPU at all"};
  const unsigned time = has_time(*best) ? slice.compute_ppm : best->compute_free_ppm;
  return {Code::kExhausted,
          fmt::format("{}; the largest slice that fits is {} and {}, on GPU {} of {}", asked,
                      memory_text(*best), percent(time), best->gpu, best->server)};
}

}  // namespace

Result<std::size_t> choose_device(const std::vector<PoolDevice>& devices,
                                  const SliceRequirements& slice) {
  const auto rank = [](const PoolDevice& device) {
    return std::tuple(free_bytes(device), device.compute_free_ppm, std::cref(device.server).get(),
                      device.gpu);
  };
  std::optional<std::size_t> best;
  for (std::size_t i = 0; i < devices.size(); ++i)
    if (is_reachable(devices[i], slice) && fits(devices[i], slice) &&
        (!best || rank(devices[i]) < rank(devices[*best])))
      best = i;
  if (!best) return nothing_fits(devices, slice);
  return *best;
}

Result<std::vector<PoolDevice>> pool_devices(const std::string& server,
                                             const std::string& listing) {
  const auto root = JsonReader::parse(listing, server);
  if (!root) return Error{Code::kUnavailable, root.error().message};
  std::vector<PoolDevice> devices;
  bool has_rdma = false;
  root->read_if("rdma", has_rdma);
  for (const JsonReader& gpu : root->at("gpus").items()) {
    PoolDevice device{.server = server,
                      .gpu = static_cast<int>(devices.size()),
                      .compute_free_ppm = kWhole,
                      .has_rdma = has_rdma};
    const JsonReader memory = gpu.at("memory_bytes");
    if (!memory.raw().is_null()) device.memory = memory.as<Bytes>();
    device.memory_free = device.memory;
    devices.push_back(device);
  }
  double used = 0;
  for (const JsonReader& tenant : root->at("tenants").items()) {
    used += tenant.at("compute_percent").as<double>() * 1e4;
    for (const JsonReader& memory : tenant.at("memory").items()) {
      const auto gpu = memory.at("gpu").as<std::size_t>();
      if (gpu >= devices.size()) continue;
      ++devices[gpu].tenants;
      const auto limit = memory.at("limit_bytes").as<Bytes>();
      if (devices[gpu].memory_free) *devices[gpu].memory_free = *devices[gpu].memory_free - limit;
    }
  }
  for (PoolDevice& device : devices)
    device.compute_free_ppm =
        static_cast<unsigned>(std::clamp(kWhole - used + 0.5, 0.0, double{kWhole}));
  if (const Status status = root->status(); !status) {
    return Error{Code::kUnavailable,
                 status.error().message + "; is the server of this version of regatta?"};
  }
  return devices;
}

}  // namespace regatta::remote
