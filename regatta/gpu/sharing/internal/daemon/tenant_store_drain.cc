// The part of tenant_store.h that is about drained devices. They stand in DIR/drained.json, as a
// list of numbers (docs/formats/gpu_state.md), also over a reboot: that is what many drain a
// machine for.

#include <utility>

#include <nlohmann/json.hpp>

#include "regatta/base/os/file.h"
#include "regatta/gpu/sharing/internal/daemon/tenant_store.h"

namespace regatta::sharing {
namespace {

using nlohmann::json;

std::string path_in(const std::string& folder) {
  return folder + "/drained.json";
}

}  // namespace

Status TenantStore::load_drained() {
  const std::string path = path_in(state_.folder());
  const auto text = os::read_file(path);
  if (!text && text.error().code == Code::kNotFound) return {};
  if (!text) {
    return Error{Code::kInvalidInput,
                 text.error().message + "; move it away, or make it readable for this user"};
  }
  const json list = json::parse(*text, nullptr, false);
  if (list.is_array()) {
    std::uint32_t devices = 0;
    bool is_list = true;
    for (const json& one : list) {
      is_list = is_list && one.is_number_unsigned() && one < kDevicesMax;
      if (is_list) devices |= 1U << one.get<unsigned>();
    }
    if (is_list) drained_ = devices;
    if (is_list) return {};
  }
  return Error{Code::kInvalidInput,
               path + ": is no list of GPUs; move the file away and start anew"};
}

Status TenantStore::set_drained(std::uint32_t devices) {
  json list = json::array();
  for (int device = 0; device < kDevicesMax; ++device) {
    if ((devices >> device & 1U) != 0) list.push_back(device);
  }
  REGATTA_TRY_DO(os::write_file_atomically(path_in(state_.folder()), list.dump() + "\n"));
  const std::uint32_t before = std::exchange(drained_, devices);
  for (int tenant = 0; tenant < kTenantsMax; ++tenant) {
    if (state_->tenants[tenant].live == 0) continue;
    for (int device = 0; device < device_count(); ++device) {
      const bool is_newly = is_drained(device) && (before >> device & 1U) == 0;
      if (is_newly) recall(tenant, device, -1, REGATTA_MEMORY_MAX);
    }
    publish(tenant);
  }
  return {};
}

std::vector<int> TenantStore::tenants_on(int device) const {
  std::vector<int> tenants;
  for (int tenant = 0; tenant < kTenantsMax; ++tenant) {
    if (state_->tenants[tenant].live == 0) continue;
    if (state_->tenants[tenant].quota[device] != 0 || tenant_holding(tenant, device).leased != 0)
      tenants.push_back(tenant);
  }
  return tenants;
}

// A tenant may keep and lower what it has on a drained device; it gets no more there.
Status TenantStore::check_drained(const TenantLimits& limits, std::optional<int> self) const {
  int usable = 0;
  for (int device = 0; device < device_count(); ++device) {
    if (!is_drained(device)) ++usable;
    const auto wanted = static_cast<std::uint64_t>(limits.memory[device].value);
    const std::uint64_t has = self ? state_->tenants[*self].quota[device] : 0;
    if (is_drained(device) && wanted > has) return drained_error(device);
  }
  if (usable == 0 && !self) return drained_error(0);
  return {};
}

Error TenantStore::drained_error(int device) {
  return {Code::kConflict, "GPU " + std::to_string(device) +
                               ": is drained and takes nothing new; choose another, or end that "
                               "with regatta gpu drain --undo"};
}

}  // namespace regatta::sharing
