#include "regatta/gpu/sharing/internal/daemon/drained_devices.h"

#include <nlohmann/json.hpp>

#include "regatta/base/core/json.h"
#include "regatta/base/os/file.h"

namespace regatta::sharing {
namespace {

using nlohmann::json;

Result<std::uint32_t> parse_devices(const std::string& text, const std::string& path) {
  REGATTA_TRY(list, JsonReader::parse(text, path));
  std::uint32_t bits = 0;
  for (const JsonReader& device : list.items())
    bits |= 1U << device.as<unsigned>(IntRange{0, kDevicesMax - 1});
  return list.finish(bits);
}

}  // namespace

Result<DrainedDevices> DrainedDevices::load(const std::string& folder) {
  const std::string path = folder + "/drained.json";
  const auto text = os::read_text_file(path);
  if (!text && text.error().code == Code::kNotFound) return DrainedDevices(path, 0);
  if (!text) {
    return Error{Code::kInvalidInput,
                 text.error().message + "; move it away, or make it readable for this user"};
  }
  const auto bits = parse_devices(*text, path);
  if (bits) return DrainedDevices(path, *bits);
  return Error{Code::kInvalidInput, bits.error().message + "; move the file away and start anew"};
}

Status DrainedDevices::set(std::uint32_t bits) {
  json list = json::array();
  for (int device = 0; device < kDevicesMax; ++device) {
    if ((bits >> device & 1U) != 0) list.push_back(device);
  }
  REGATTA_TRY_DO(os::write_file_atomically(path_, list.dump() + "\n"));
  bits_ = bits;
  return {};
}

Status DrainedDevices::check(const TenantLimits& limits, int device_count,
                             const TenantRecord* current) const {
  int usable = 0;
  for (int device = 0; device < device_count; ++device) {
    if (!contains(device)) ++usable;
    const auto wanted = static_cast<std::uint64_t>(at(limits.memory, device).value);
    const std::uint64_t quota = current != nullptr ? current->quota[device] : 0;
    if (contains(device) && wanted > quota) return error(device);
  }
  if (usable == 0 && current == nullptr) return error(0);
  return {};
}

Error DrainedDevices::error(int device) {
  return {Code::kConflict, "GPU " + std::to_string(device) +
                               ": is drained and accepts no new work; choose another, or end the "
                               "draining with regatta gpu drain --undo"};
}

}  // namespace regatta::sharing
