// libnvidia-ml.so.1 of the stand-in: start and devices.
#include "tests/standin/nvml.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

using namespace regatta::standin;

namespace {

struct Library {
  std::mutex mutex;
  int users = 0;
  std::vector<std::unique_ptr<nvmlDevice_st>> devices;  // they stay: their links have threads
};

Library& library() {
  static auto* const only = new Library;
  return *only;
}

nvmlReturn_t open_devices(std::vector<std::unique_ptr<nvmlDevice_st>>& devices) {
  const char* const sockets = std::getenv("REGATTA_STANDIN");
  std::string rest = sockets == nullptr ? "" : sockets;
  if (rest.empty()) return NVML_ERROR_DRIVER_NOT_LOADED;
  while (!rest.empty()) {
    const std::size_t end = rest.find(':');
    auto& device = devices.emplace_back(std::make_unique<nvmlDevice_st>());
    device->index = static_cast<unsigned>(devices.size()) - 1;
    if (!device->link.connect(rest.substr(0, end))) return NVML_ERROR_DRIVER_NOT_LOADED;
    device->bytes = device->link.call({.message = PacketType::kHandshake}).bytes;
    rest = end == std::string::npos ? "" : rest.substr(end + 1);
  }
  return NVML_SUCCESS;
}

nvmlReturn_t check_started(const void* target) {
  const std::lock_guard lock(library().mutex);
  if (library().users == 0) return NVML_ERROR_UNINITIALIZED;
  return target == nullptr ? NVML_ERROR_INVALID_ARGUMENT : NVML_SUCCESS;
}

nvmlReturn_t say(char* text, unsigned length, const std::string& words) {
  if (length <= words.size()) return NVML_ERROR_INSUFFICIENT_SIZE;
  words.copy(text, words.size());
  text[words.size()] = '\0';
  return NVML_SUCCESS;
}

// The same bytes as cuDeviceGetUuid has.
std::string uuid_of(const nvmlDevice_st& device) {
  unsigned char bytes[16];
  std::memcpy(bytes, "regatta standin", sizeof bytes);
  bytes[15] = static_cast<unsigned char>(device.index);
  std::string text = "GPU-";
  for (int i = 0; i < 16; ++i) {
    char digits[4];
    std::snprintf(digits, sizeof digits, "%02x", bytes[i]);
    text += digits;
    if (i == 3 || i == 5 || i == 7 || i == 9) text += '-';
  }
  return text;
}

template <typename Matches>
nvmlReturn_t find(nvmlDevice_t* device, Matches matches) {
  const std::lock_guard lock(library().mutex);
  for (const auto& own : library().devices)
    if (matches(*own)) {
      *device = own.get();
      return NVML_SUCCESS;
    }
  return NVML_ERROR_NOT_FOUND;
}

}  // namespace

namespace regatta::standin {

nvmlReturn_t check(nvmlDevice_t device, const void* target) {
  Library& all = library();
  const std::lock_guard lock(all.mutex);
  if (all.users == 0) return NVML_ERROR_UNINITIALIZED;
  const bool is_known =
      std::ranges::any_of(all.devices, [&](const auto& own) { return own.get() == device; });
  if (!is_known || target == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  return device->link.is_lost() ? NVML_ERROR_GPU_IS_LOST : NVML_SUCCESS;
}

}  // namespace regatta::standin

// NOLINTBEGIN(readability-identifier-naming): the names are the library's
extern "C" {

nvmlReturn_t nvmlInit_v2() {
  Library& all = library();
  const std::lock_guard lock(all.mutex);
  if (all.devices.empty()) {
    std::vector<std::unique_ptr<nvmlDevice_st>> devices;
    if (const nvmlReturn_t opened = open_devices(devices); opened != NVML_SUCCESS) {
      for (auto& device : devices)
        (void)device.release();
      return opened;
    }
    all.devices = std::move(devices);
  }
  ++all.users;
  return NVML_SUCCESS;
}
nvmlReturn_t nvmlInit() {
  return nvmlInit_v2();
}
nvmlReturn_t nvmlInitWithFlags(unsigned) {
  return nvmlInit_v2();
}

nvmlReturn_t nvmlShutdown() {
  const std::lock_guard lock(library().mutex);
  if (library().users == 0) return NVML_ERROR_UNINITIALIZED;
  --library().users;
  return NVML_SUCCESS;
}

const char* nvmlErrorString(nvmlReturn_t result) {
  constexpr std::pair<nvmlReturn_t, const char*> kTexts[] = {
      {NVML_SUCCESS, "The operation was successful"},
      {NVML_ERROR_UNINITIALIZED, "Uninitialized"},
      {NVML_ERROR_INVALID_ARGUMENT, "Invalid Argument"},
      {NVML_ERROR_NOT_SUPPORTED, "Not Supported"},
      {NVML_ERROR_NOT_FOUND, "Not Found"},
      {NVML_ERROR_INSUFFICIENT_SIZE, "Insufficient Size"},
      {NVML_ERROR_DRIVER_NOT_LOADED, "Driver Not Loaded"},
      {NVML_ERROR_GPU_IS_LOST, "GPU is lost"},
      {NVML_ERROR_ARGUMENT_VERSION_MISMATCH, "Argument version mismatch"}};
  for (const auto& [code, text] : kTexts)
    if (code == result) return text;
  return "Unknown Error";
}

nvmlReturn_t nvmlSystemGetDriverVersion(char* text, unsigned length) {
  const nvmlReturn_t result = check_started(text);
  return result == NVML_SUCCESS ? say(text, length, "580.0") : result;
}
nvmlReturn_t nvmlSystemGetNVMLVersion(char* text, unsigned length) {
  const nvmlReturn_t result = check_started(text);
  return result == NVML_SUCCESS ? say(text, length, "13.580.0") : result;
}
nvmlReturn_t nvmlSystemGetCudaDriverVersion(int* version) {
  if (version == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  *version = 13000;
  return NVML_SUCCESS;
}
nvmlReturn_t nvmlSystemGetCudaDriverVersion_v2(int* version) {
  return nvmlSystemGetCudaDriverVersion(version);
}

nvmlReturn_t nvmlSystemGetProcessName(unsigned pid, char* name, unsigned length) {
  if (const nvmlReturn_t result = check_started(name); result != NVML_SUCCESS) return result;
  std::ifstream file("/proc/" + std::to_string(pid) + "/cmdline");
  std::string words;
  if (!std::getline(file, words, '\0')) return NVML_ERROR_NOT_FOUND;
  return say(name, length, words.substr(0, length == 0 ? 0 : length - 1));
}

nvmlReturn_t nvmlDeviceGetCount_v2(unsigned* count) {
  if (const nvmlReturn_t result = check_started(count); result != NVML_SUCCESS) return result;
  *count = static_cast<unsigned>(library().devices.size());
  return NVML_SUCCESS;
}
nvmlReturn_t nvmlDeviceGetCount(unsigned* count) {
  return nvmlDeviceGetCount_v2(count);
}

nvmlReturn_t nvmlDeviceGetHandleByIndex_v2(unsigned index, nvmlDevice_t* device) {
  if (const nvmlReturn_t result = check_started(device); result != NVML_SUCCESS) return result;
  const auto is_it = [&](const nvmlDevice_st& own) { return own.index == index; };
  return find(device, is_it) == NVML_SUCCESS ? NVML_SUCCESS : NVML_ERROR_INVALID_ARGUMENT;
}
nvmlReturn_t nvmlDeviceGetHandleByIndex(unsigned index, nvmlDevice_t* device) {
  return nvmlDeviceGetHandleByIndex_v2(index, device);
}

nvmlReturn_t nvmlDeviceGetHandleByUUID(const char* uuid, nvmlDevice_t* device) {
  if (const nvmlReturn_t result = check_started(device); result != NVML_SUCCESS) return result;
  if (uuid == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  return find(device, [&](const nvmlDevice_st& own) { return uuid_of(own) == uuid; });
}

// "0000:01:00.0", with a longer domain or none.
nvmlReturn_t nvmlDeviceGetHandleByPciBusId_v2(const char* id, nvmlDevice_t* device) {
  if (const nvmlReturn_t result = check_started(device); result != NVML_SUCCESS) return result;
  if (id == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  unsigned domain = 0;
  unsigned bus = 0;
  unsigned place = 0;
  if (std::sscanf(id, "%x:%x:%x", &domain, &bus, &place) != 3) {
    domain = 0;
    if (std::sscanf(id, "%x:%x", &bus, &place) != 2) return NVML_ERROR_INVALID_ARGUMENT;
  }
  if (domain != 0 || place != 0) return NVML_ERROR_NOT_FOUND;
  return find(device, [&](const nvmlDevice_st& own) { return own.index + 1 == bus; });
}
nvmlReturn_t nvmlDeviceGetHandleByPciBusId(const char* id, nvmlDevice_t* device) {
  return nvmlDeviceGetHandleByPciBusId_v2(id, device);
}

nvmlReturn_t nvmlDeviceGetName(nvmlDevice_t device, char* name, unsigned length) {
  const nvmlReturn_t result = check(device, name);
  return result == NVML_SUCCESS ? say(name, length, "Regatta stand-in") : result;
}
nvmlReturn_t nvmlDeviceGetUUID(nvmlDevice_t device, char* uuid, unsigned length) {
  const nvmlReturn_t result = check(device, uuid);
  return result == NVML_SUCCESS ? say(uuid, length, uuid_of(*device)) : result;
}
nvmlReturn_t nvmlDeviceGetIndex(nvmlDevice_t device, unsigned* index) {
  const nvmlReturn_t result = check(device, index);
  if (result == NVML_SUCCESS) *index = device->index;
  return result;
}
nvmlReturn_t nvmlDeviceGetMinorNumber(nvmlDevice_t device, unsigned* number) {
  return nvmlDeviceGetIndex(device, number);
}

nvmlReturn_t nvmlDeviceGetPciInfo_v3(nvmlDevice_t device, nvmlPciInfo_t* pci) {
  if (const nvmlReturn_t result = check(device, pci); result != NVML_SUCCESS) return result;
  *pci = {};
  pci->bus = device->index + 1;
  pci->pciDeviceId = 0x233510deU;
  std::snprintf(pci->busIdLegacy, sizeof pci->busIdLegacy, "0000:%02X:00.0", pci->bus & 0xffU);
  std::snprintf(pci->busId, sizeof pci->busId, "00000000:%02X:00.0", pci->bus & 0xffU);
  return NVML_SUCCESS;
}
nvmlReturn_t nvmlDeviceGetPciInfo_v2(nvmlDevice_t device, nvmlPciInfo_t* pci) {
  return nvmlDeviceGetPciInfo_v3(device, pci);
}

nvmlReturn_t nvmlDeviceGetCudaComputeCapability(nvmlDevice_t device, int* major, int* minor) {
  const nvmlReturn_t result = check(device, major);
  if (result != NVML_SUCCESS) return result;
  if (minor == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  *major = 9;
  *minor = 0;
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetMigMode(nvmlDevice_t device, unsigned* current, unsigned*) {
  const nvmlReturn_t result = check(device, current);
  return result == NVML_SUCCESS ? NVML_ERROR_NOT_SUPPORTED : result;
}

}  // extern "C"
// NOLINTEND(readability-identifier-naming)
