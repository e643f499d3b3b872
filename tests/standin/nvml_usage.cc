// Memory and work of the devices: work is reported period by period, as late as on a GPU.
#include <algorithm>
#include <cstdlib>
#include <utility>
#include <vector>

#include "tests/standin/nvml.h"

using namespace regatta::standin;

namespace {

// Processes with contexts and what they hold, of several connections one.
std::vector<nvmlProcessInfo_t> processes_of(nvmlDevice_st& device) {
  constexpr unsigned kNoInstance = ~0U;
  std::vector<Packet> lines;
  device.link.call({.message = PacketType::kUsage}, &lines);
  std::vector<nvmlProcessInfo_t> processes;
  for (const Packet& line : lines) {
    if (line.context == 0) continue;
    const auto at = std::ranges::find(processes, line.width, &nvmlProcessInfo_t::pid);
    if (at == processes.end())
      processes.push_back({line.width, line.bytes, kNoInstance, kNoInstance});
    else
      at->usedGpuMemory += line.bytes;
  }
  constexpr unsigned long long kNotAvailable = ~0ULL;
  if (std::getenv("REGATTA_STANDIN_NO_PROCESS_MEMORY") != nullptr)
    for (nvmlProcessInfo_t& process : processes)
      process.usedGpuMemory = kNotAvailable;
  return processes;
}

std::vector<nvmlEncoderSessionInfo_t> sessions_of(nvmlDevice_st& device) {
  std::vector<Packet> lines;
  device.link.call({.message = PacketType::kSessions}, &lines);
  std::vector<nvmlEncoderSessionInfo_t> sessions;
  for (const Packet& line : lines)
    if (line.engine == Engine::kEncode)
      sessions.push_back({.sessionId = static_cast<unsigned>(line.ticket), .pid = line.width});
  return sessions;
}

template <typename Info, typename Make>
nvmlReturn_t list_processes(nvmlDevice_t device, unsigned* count, Info* infos, Make make) {
  if (const nvmlReturn_t result = check(device, count); result != NVML_SUCCESS) return result;
  const std::vector<nvmlProcessInfo_t> processes = processes_of(*device);
  const unsigned room = std::exchange(*count, static_cast<unsigned>(processes.size()));
  if (room < processes.size()) return NVML_ERROR_INSUFFICIENT_SIZE;
  if (infos == nullptr && !processes.empty()) return NVML_ERROR_INVALID_ARGUMENT;
  std::ranges::transform(processes, infos, make);
  return NVML_SUCCESS;
}

nvmlReturn_t list_none(nvmlDevice_t device, unsigned* count) {
  const nvmlReturn_t result = check(device, count);
  if (result == NVML_SUCCESS) *count = 0;
  return result;
}

unsigned percent(std::uint64_t part_ns, std::int64_t period_ns) {
  return static_cast<unsigned>(
      std::min<std::uint64_t>(100, part_ns * 100 / static_cast<std::uint64_t>(period_ns)));
}

// Work of each process in the periods after `since`, in microseconds; none where there was no work.
std::vector<nvmlProcessUtilizationInfo_v1_t> samples_of(nvmlDevice_st& device,
                                                        unsigned long long since) {
  std::vector<Packet> lines;
  const Packet reply = device.link.call(
      {.message = PacketType::kSamples, .time_ns = static_cast<std::int64_t>(since) * 1000 + 999},
      &lines);
  std::vector<nvmlProcessUtilizationInfo_v1_t> samples;
  for (const Packet& line : lines)
    samples.push_back({.timeStamp = static_cast<unsigned long long>(line.time_ns) / 1000,
                       .pid = line.width,
                       .smUtil = percent(line.bytes, reply.end_time_ns),
                       .memUtil = percent(line.sequence, reply.end_time_ns),
                       .encUtil = percent(line.ticket, reply.end_time_ns),
                       .decUtil = percent(line.after_sequence, reply.end_time_ns),
                       .jpgUtil = 0,
                       .ofaUtil = 0});
  return samples;
}

struct Rates {
  unsigned kernels = 0;
  unsigned copies = 0;
  unsigned encoding = 0;
  unsigned decoding = 0;
  unsigned period_us = 0;
};

// Usage in the last whole period.
Rates rates_of(nvmlDevice_st& device) {
  std::vector<Packet> lines;
  const Packet reply = device.link.call({.message = PacketType::kSamples}, &lines);
  std::uint64_t sums[4] = {};
  for (const Packet& line : lines) {
    if (line.time_ns != reply.time_ns) continue;
    const std::uint64_t parts[4] = {line.bytes, line.sequence, line.ticket, line.after_sequence};
    for (int i = 0; i < 4; ++i)
      sums[i] += parts[i];
  }
  const std::int64_t period = std::max<std::int64_t>(reply.end_time_ns, 1);
  return {percent(sums[0], period), percent(sums[1], period), percent(sums[2], period),
          percent(sums[3], period), static_cast<unsigned>(period / 1000)};
}

std::uint64_t free_bytes_of(nvmlDevice_st& device) {
  return device.link.call({.message = PacketType::kMemory}).bytes;
}

}  // namespace

// NOLINTBEGIN(readability-identifier-naming): the names are the library's
extern "C" {

nvmlReturn_t nvmlDeviceGetMemoryInfo(nvmlDevice_t device, nvmlMemory_t* memory) {
  if (const nvmlReturn_t result = check(device, memory); result != NVML_SUCCESS) return result;
  memory->total = device->bytes;
  memory->free = free_bytes_of(*device);
  memory->used = memory->total - memory->free;
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetMemoryInfo_v2(nvmlDevice_t device, nvmlMemory_v2_t* memory) {
  if (const nvmlReturn_t result = check(device, memory); result != NVML_SUCCESS) return result;
  if (memory->version != nvml_version<nvmlMemory_v2_t>(2))
    return NVML_ERROR_FUNCTION_NOT_FOUND;  // as driver 580 says
  memory->total = device->bytes;
  memory->reserved = 0;
  memory->free = free_bytes_of(*device);
  memory->used = memory->total - memory->free;
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetBAR1MemoryInfo(nvmlDevice_t device, nvmlBAR1Memory_t* memory) {
  if (const nvmlReturn_t result = check(device, memory); result != NVML_SUCCESS) return result;
  *memory = {device->bytes, device->bytes, 0};
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetUtilizationRates(nvmlDevice_t device, nvmlUtilization_t* rates) {
  if (const nvmlReturn_t result = check(device, rates); result != NVML_SUCCESS) return result;
  const Rates now = rates_of(*device);
  *rates = {now.kernels, now.copies};
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetEncoderUtilization(nvmlDevice_t device, unsigned* percents,
                                             unsigned* period_us) {
  if (const nvmlReturn_t result = check(device, percents); result != NVML_SUCCESS) return result;
  if (period_us == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  const Rates now = rates_of(*device);
  *percents = now.encoding;
  *period_us = now.period_us;
  return NVML_SUCCESS;
}
nvmlReturn_t nvmlDeviceGetDecoderUtilization(nvmlDevice_t device, unsigned* percents,
                                             unsigned* period_us) {
  if (const nvmlReturn_t result = check(device, percents); result != NVML_SUCCESS) return result;
  if (period_us == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  const Rates now = rates_of(*device);
  *percents = now.decoding;
  *period_us = now.period_us;
  return NVML_SUCCESS;
}

// Sessions are counted; how fast they go is not.
nvmlReturn_t nvmlDeviceGetEncoderStats(nvmlDevice_t device, unsigned* count,
                                       unsigned* pictures_per_second, unsigned* latency_us) {
  if (const nvmlReturn_t result = check(device, count); result != NVML_SUCCESS) return result;
  if (pictures_per_second == nullptr || latency_us == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  *count = static_cast<unsigned>(sessions_of(*device).size());
  *pictures_per_second = 0;
  *latency_us = 0;
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetEncoderSessions(nvmlDevice_t device, unsigned* count,
                                          nvmlEncoderSessionInfo_t* infos) {
  if (const nvmlReturn_t result = check(device, count); result != NVML_SUCCESS) return result;
  const auto sessions = sessions_of(*device);
  const unsigned room = std::exchange(*count, static_cast<unsigned>(sessions.size()));
  if (infos == nullptr) return NVML_SUCCESS;  // asks how many
  if (room < sessions.size()) return NVML_ERROR_INSUFFICIENT_SIZE;
  std::ranges::copy(sessions, infos);
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetComputeRunningProcesses(nvmlDevice_t device, unsigned* count,
                                                  nvmlProcessInfo_v1_t* infos) {
  return list_processes(device, count, infos, [](const nvmlProcessInfo_t& info) {
    return nvmlProcessInfo_v1_t{info.pid, info.usedGpuMemory};
  });
}
nvmlReturn_t nvmlDeviceGetComputeRunningProcesses_v2(nvmlDevice_t device, unsigned* count,
                                                     nvmlProcessInfo_t* infos) {
  return list_processes(device, count, infos, [](const nvmlProcessInfo_t& info) { return info; });
}
nvmlReturn_t nvmlDeviceGetComputeRunningProcesses_v3(nvmlDevice_t device, unsigned* count,
                                                     nvmlProcessInfo_t* infos) {
  return nvmlDeviceGetComputeRunningProcesses_v2(device, count, infos);
}
nvmlReturn_t nvmlDeviceGetGraphicsRunningProcesses_v3(nvmlDevice_t device, unsigned* count,
                                                      nvmlProcessInfo_t*) {
  return list_none(device, count);
}
nvmlReturn_t nvmlDeviceGetMPSComputeRunningProcesses_v3(nvmlDevice_t device, unsigned* count,
                                                        nvmlProcessInfo_t*) {
  return list_none(device, count);
}

nvmlReturn_t nvmlDeviceGetProcessUtilization(nvmlDevice_t device,
                                             nvmlProcessUtilizationSample_t* into, unsigned* count,
                                             unsigned long long last_seen) {
  if (const nvmlReturn_t result = check(device, count); result != NVML_SUCCESS) return result;
  const auto samples = samples_of(*device, last_seen);
  const unsigned room = std::exchange(*count, static_cast<unsigned>(samples.size()));
  if (samples.empty()) return NVML_ERROR_NOT_FOUND;
  if (into == nullptr || room < samples.size()) return NVML_ERROR_INSUFFICIENT_SIZE;
  for (const auto& sample : samples)
    *into++ = {sample.pid,     sample.timeStamp, sample.smUtil,
               sample.memUtil, sample.encUtil,   sample.decUtil};
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetProcessesUtilizationInfo(nvmlDevice_t device,
                                                   nvmlProcessesUtilizationInfo_v1_t* into) {
  if (const nvmlReturn_t result = check(device, into); result != NVML_SUCCESS) return result;
  if (into->version != nvml_version<nvmlProcessesUtilizationInfo_v1_t>(1))
    return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
  const auto samples = samples_of(*device, into->lastSeenTimeStamp);
  const unsigned room =
      std::exchange(into->processSamplesCount, static_cast<unsigned>(samples.size()));
  if (samples.empty()) return NVML_ERROR_NOT_FOUND;
  if (into->procUtilArray == nullptr || room < samples.size()) return NVML_ERROR_INSUFFICIENT_SIZE;
  std::ranges::copy(samples, into->procUtilArray);
  return NVML_SUCCESS;
}

}  // extern "C"
// NOLINTEND(readability-identifier-naming)
