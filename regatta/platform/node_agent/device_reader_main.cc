// regatta-device-reader: writes what the GPUs of this server do, once a second, for the agent that
// started it; with the tenants of the daemon of shared GPUs, where it runs. Ends with status 3
// where there is nothing to read.
#include <algorithm>
#include <csignal>
#include <string>

#include <nlohmann/json.hpp>
#include <unistd.h>

#include "regatta/base/os/clock.h"
#include "regatta/base/os/file.h"
#include "regatta/gpu/sharing/control.h"
#include "regatta/gpu/sharing/messages.h"
#include "regatta/platform/node_agent/internal/device_meter.h"
#include "regatta/platform/node_agent/internal/gpu_reader.h"

namespace {

using regatta::node_protocol::kUnknownPercent;
namespace agent = regatta::node_agent;
namespace protocol = regatta::node_protocol;

constexpr int kNothingToRead = 3;
constexpr double kMib = 1 << 20;

std::uint8_t percent(std::optional<int> value) {
  return value ? static_cast<std::uint8_t>(std::clamp(*value, 0, 100)) : kUnknownPercent;
}

agent::DeviceState read_gpus(const regatta::node_agent::GpuReader& reader) {
  agent::DeviceState state;
  state.readings.source = protocol::ReadingSource::kNvml;
  const int count = std::min(reader.count(), regatta::sched::kNodeDevicesMax);
  for (int gpu = 0; gpu < count; ++gpu) {
    const regatta::node_agent::GpuReading reading = reader.read(gpu);
    const std::uint32_t bit = std::uint32_t{1} << static_cast<unsigned>(gpu);
    state.readings.devices |= bit;
    state.readings.use.push_back(percent(reading.use_percent));
    state.readings.memory.push_back(percent(reading.memory_percent));
    if (reading.has_failed) state.failed |= bit;
  }
  return state;
}

// A daemon that is not there, or that says something else, gives no tenants.
std::vector<protocol::SharedTenant> read_tenants() {
  std::vector<protocol::SharedTenant> tenants;
  if (::access(regatta::sharing::kDefaultSocket, W_OK) != 0) return tenants;
  const auto text = regatta::sharing::send_control_request(regatta::sharing::kDefaultSocket,
                                                           R"({"request":"ps"})");
  if (!text) return tenants;
  const nlohmann::json answer = nlohmann::json::parse(*text, nullptr, false);
  if (!answer.is_object()) return tenants;
  for (const auto& tenant : answer.value("tenants", nlohmann::json::array())) {
    for (const auto& memory : tenant.value("memory", nlohmann::json::array())) {
      protocol::SharedTenant one{.name = tenant.value("name", ""),
                                 .device = memory.value("gpu", 0)};
      one.memory_mib = static_cast<int>(memory.value("used_bytes", 0.0) / kMib);
      for (const auto& time : tenant.value("time", nlohmann::json::array()))
        if (time.value("gpu", -1) == one.device)
          one.use_percent =
              static_cast<int>(std::clamp(time.value("last_second_percent", 0.0), 0.0, 100.0));
      if (tenants.size() < protocol::kSharedTenantsMax) tenants.push_back(std::move(one));
    }
  }
  return tenants;
}

int run() {
  const auto reader = regatta::node_agent::GpuReader::open();
  if (!reader) return kNothingToRead;
  for (;;) {
    agent::DeviceState state = read_gpus(*reader);
    state.readings.shared = read_tenants();
    const std::string record = agent::encode_device_record(state);
    if (::write(STDOUT_FILENO, record.data(), record.size()) != static_cast<ssize_t>(record.size()))
      return 1;
    regatta::os::sleep_for(regatta::Seconds{1});
  }
}

}  // namespace

int main() {
  try {
    return run();
  } catch (const std::exception&) {
    return 1;
  }
}
