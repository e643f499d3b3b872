// Start, devices and contexts.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <string>

#include <pthread.h>

#include "tests/standin/api.h"
#include "tests/standin/checkpoint.h"
#include "tests/standin/context_storage.h"
#include "tests/standin/pool.h"
#include "tests/standin/process.h"

using namespace regatta::standin;

namespace {

void guard_forks() {
  pthread_atfork([] { process().mutex.lock(); }, [] { process().mutex.unlock(); },
                 [] {
                   process().is_forked = true;
                   for (const auto& device : process().devices)
                     device->link.abandon();
                   process().mutex.unlock();
                 });
}

// Where it fails what is open stays: the link has threads.
bool open_device(std::vector<std::unique_ptr<DeviceState>>& devices, const std::string& socket) {
  DeviceState* const device = devices.emplace_back(std::make_unique<DeviceState>()).get();
  device->ordinal = static_cast<int>(devices.size()) - 1;
  if (!device->link.connect(socket)) return false;
  const Packet hello = device->link.call({.message = PacketType::kHandshake});
  if (hello.status != 1) return false;
  device->bytes = hello.bytes;
  device->processors = hello.width;
  device->id = hello.ticket;
  device->link.set_control(handle_control);
  device->default_pool = device->pool = new CUmemPoolHandle_st{.device = device};
  return device->arena.open(device->link, device->bytes);
}

// Under the lock.
CUresult find_device(CUdevice number, DeviceState** device) {
  Process& all = process();
  if (!all.is_started || all.is_forked) return CUDA_ERROR_NOT_INITIALIZED;
  if (number < 0 || static_cast<std::size_t>(number) >= all.devices.size())
    return CUDA_ERROR_INVALID_DEVICE;
  *device = all.devices[static_cast<std::size_t>(number)].get();
  return CUDA_SUCCESS;
}

CUresult create_context(CUcontext* context, unsigned flags, CUdevice number) {
  if (context == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const std::lock_guard lock(process().mutex);
  DeviceState* device = nullptr;
  if (const CUresult found = find_device(number, &device); found != CUDA_SUCCESS) return found;
  const CUresult made = make_context(*device, flags, context);
  if (made == CUDA_SUCCESS) context_stack().push_back(*context);
  return made;
}

// Attributes of a GPU of compute capability 9.0, where the device has no setting for them.
const std::map<int, int> kAttributes = {
    {1, 1024},     {2, 1024},      {3, 1024},    {4, 64},      {5, 2147483647},  {6, 65535},
    {7, 65535},    {8, 49152},     {9, 65536},   {10, 32},     {11, 2147483647}, {12, 65536},
    {13, 1980000}, {14, 512},      {15, 1},      {17, 0},      {18, 0},          {19, 1},
    {20, 0},       {31, 1},        {32, 1},      {34, 0},      {35, 0},          {36, 2619000},
    {37, 5120},    {38, 52428800}, {39, 2048},   {40, 3},      {41, 1},          {50, 0},
    {75, 9},       {76, 0},        {78, 1},      {81, 233472}, {82, 65536},      {83, 1},
    {89, 1},       {95, 1},        {97, 232448}, {102, 1},     {115, 1}};

}  // namespace

// NOLINTBEGIN(readability-identifier-naming): the names are the driver's
extern "C" {

CUresult cuInit(unsigned flags) {
  if (flags != 0) return CUDA_ERROR_INVALID_VALUE;
  Process& all = process();
  const std::lock_guard lock(all.mutex);
  if (all.is_forked) return CUDA_ERROR_NOT_INITIALIZED;
  if (all.is_started) return CUDA_SUCCESS;
  const char* const sockets = std::getenv("REGATTA_STANDIN");
  std::string rest = sockets == nullptr ? "" : sockets;
  std::vector<std::unique_ptr<DeviceState>> devices;
  while (!rest.empty()) {
    const std::size_t end = rest.find(':');
    if (!open_device(devices, rest.substr(0, end))) {
      for (auto& device : devices)
        (void)device.release();
      return CUDA_ERROR_NO_DEVICE;
    }
    rest = end == std::string::npos ? "" : rest.substr(end + 1);
  }
  if (devices.empty()) return CUDA_ERROR_NO_DEVICE;
  all.devices = std::move(devices);
  guard_forks();
  all.is_started = true;
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetCount(int* count) {
  if (count == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const std::lock_guard lock(process().mutex);
  if (!process().is_started) return CUDA_ERROR_NOT_INITIALIZED;
  *count = static_cast<int>(process().devices.size());
  return CUDA_SUCCESS;
}

CUresult cuDeviceGet(CUdevice* number, int ordinal) {
  if (number == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const std::lock_guard lock(process().mutex);
  DeviceState* device = nullptr;
  const CUresult found = find_device(ordinal, &device);
  if (found == CUDA_SUCCESS) *number = ordinal;
  return found;
}

CUresult cuDeviceGetName(char* name, int size, CUdevice number) {
  if (name == nullptr || size <= 0) return CUDA_ERROR_INVALID_VALUE;
  const std::lock_guard lock(process().mutex);
  DeviceState* device = nullptr;
  const CUresult found = find_device(number, &device);
  if (found == CUDA_SUCCESS)
    std::snprintf(name, static_cast<std::size_t>(size), "Regatta stand-in");
  return found;
}

CUresult cuDeviceGetUuid(CUuuid* id, CUdevice number) {
  if (id == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const std::lock_guard lock(process().mutex);
  DeviceState* device = nullptr;
  const CUresult found = find_device(number, &device);
  if (found != CUDA_SUCCESS) return found;
  std::memcpy(id->bytes, "regatta standin", sizeof id->bytes);
  id->bytes[15] = static_cast<char>(number);
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetUuid_v2(CUuuid* id, CUdevice number) {
  return cuDeviceGetUuid(id, number);
}

CUresult cuDeviceTotalMem_v2(std::size_t* bytes, CUdevice number) {
  if (bytes == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const std::lock_guard lock(process().mutex);
  DeviceState* device = nullptr;
  const CUresult found = find_device(number, &device);
  if (found == CUDA_SUCCESS) *bytes = device->bytes;
  return found;
}

CUresult cuDeviceGetAttribute(int* value, int attribute, CUdevice number) {
  if (value == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const std::lock_guard lock(process().mutex);
  DeviceState* device = nullptr;
  const CUresult found = find_device(number, &device);
  if (found != CUDA_SUCCESS) return found;
  const auto at = kAttributes.find(attribute);
  if (attribute == CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)
    *value = static_cast<int>(device->processors);
  else if (attribute == 33)  // the PCI bus
    *value = number + 1;
  else if (at != kAttributes.end())
    *value = at->second;
  else if (attribute > 0 && attribute < 150)
    *value = 0;
  else
    return CUDA_ERROR_INVALID_VALUE;
  return CUDA_SUCCESS;
}

CUresult cuCtxCreate_v2(CUcontext* context, unsigned flags, CUdevice number) {
  return create_context(context, flags, number);
}

CUresult cuCtxCreate_v3(CUcontext* context, void*, int, unsigned flags, CUdevice number) {
  return create_context(context, flags, number);
}

CUresult cuCtxCreate_v4(CUcontext* context, void*, unsigned flags, CUdevice number) {
  return create_context(context, flags, number);
}

CUresult cuCtxDestroy_v2(CUcontext context) {
  {
    const std::lock_guard lock(process().mutex);
    if (!process().contexts.contains(context) || context->is_primary)
      return CUDA_ERROR_INVALID_CONTEXT;
  }
  wait_context(context);
  end_context_storage(context);
  const std::lock_guard lock(process().mutex);
  destroy_context(context);
  if (!context_stack().empty() && context_stack().back() == context) context_stack().pop_back();
  return CUDA_SUCCESS;
}

CUresult cuCtxPushCurrent_v2(CUcontext context) {
  const std::lock_guard lock(process().mutex);
  if (!process().contexts.contains(context)) return CUDA_ERROR_INVALID_CONTEXT;
  context_stack().push_back(context);
  return CUDA_SUCCESS;
}

CUresult cuCtxPopCurrent_v2(CUcontext* context) {
  if (context_stack().empty()) return CUDA_ERROR_INVALID_CONTEXT;
  if (context != nullptr) *context = context_stack().back();
  context_stack().pop_back();
  return CUDA_SUCCESS;
}

CUresult cuCtxSetCurrent(CUcontext context) {
  const std::lock_guard lock(process().mutex);
  if (!process().is_started) return CUDA_ERROR_NOT_INITIALIZED;
  if (context != nullptr && !process().contexts.contains(context))
    return CUDA_ERROR_INVALID_CONTEXT;
  if (!context_stack().empty()) context_stack().pop_back();
  if (context != nullptr) context_stack().push_back(context);
  return CUDA_SUCCESS;
}

CUresult cuCtxGetCurrent(CUcontext* context) {
  if (context == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const std::lock_guard lock(process().mutex);
  if (!process().is_started) return CUDA_ERROR_NOT_INITIALIZED;
  *context = context_stack().empty() ? nullptr : context_stack().back();
  return CUDA_SUCCESS;
}

CUresult cuCtxGetDevice(CUdevice* number) {
  if (number == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const std::lock_guard lock(process().mutex);
  CUcontext context = nullptr;
  const CUresult result = current_context(&context);
  if (result == CUDA_SUCCESS) *number = context->device->ordinal;
  return result;
}

CUresult cuCtxGetFlags(unsigned* flags) {
  if (flags == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const std::lock_guard lock(process().mutex);
  CUcontext context = nullptr;
  const CUresult result = current_context(&context);
  if (result == CUDA_SUCCESS) *flags = context->flags;
  return result;
}

CUresult cuCtxSynchronize() {
  CUcontext context = nullptr;
  {
    const std::lock_guard lock(process().mutex);
    if (const CUresult result = current_context(&context); result != CUDA_SUCCESS) return result;
    if (const CUresult result = check_no_capture(); result != CUDA_SUCCESS) return result;
  }
  return wait_context(context);
}

CUresult cuDevicePrimaryCtxRetain(CUcontext* context, CUdevice number) {
  if (context == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const std::lock_guard lock(process().mutex);
  DeviceState* device = nullptr;
  if (const CUresult found = find_device(number, &device); found != CUDA_SUCCESS) return found;
  if (device->primary == nullptr) {
    const CUresult made = make_context(*device, device->primary_flags, &device->primary);
    if (made != CUDA_SUCCESS) return made;
    device->primary->is_primary = true;
  }
  ++device->primary_references;
  *context = device->primary;
  return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxRelease_v2(CUdevice number) {
  {
    const std::lock_guard lock(process().mutex);
    DeviceState* device = nullptr;
    if (const CUresult found = find_device(number, &device); found != CUDA_SUCCESS) return found;
    if (device->primary_references == 0) return CUDA_ERROR_INVALID_CONTEXT;
    if (--device->primary_references > 0) return CUDA_SUCCESS;
  }
  return cuDevicePrimaryCtxReset_v2(number);
}

CUresult cuDevicePrimaryCtxReset_v2(CUdevice number) {
  DeviceState* device = nullptr;
  CUcontext context = nullptr;
  {
    const std::lock_guard lock(process().mutex);
    if (const CUresult found = find_device(number, &device); found != CUDA_SUCCESS) return found;
    context = device->primary;
    if (context == nullptr) return CUDA_SUCCESS;
  }
  wait_context(context);
  end_context_storage(context);
  const std::lock_guard lock(process().mutex);
  destroy_context(context);
  device->primary = nullptr;
  device->primary_references = 0;
  return CUDA_SUCCESS;
}

// As before CUDA 11, of which the runtime library still asks for these two.
CUresult cuDevicePrimaryCtxRelease(CUdevice number) {
  return cuDevicePrimaryCtxRelease_v2(number);
}

CUresult cuDevicePrimaryCtxReset(CUdevice number) {
  return cuDevicePrimaryCtxReset_v2(number);
}

CUresult cuDevicePrimaryCtxGetState(CUdevice number, unsigned* flags, int* active) {
  if (flags == nullptr || active == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const std::lock_guard lock(process().mutex);
  DeviceState* device = nullptr;
  if (const CUresult found = find_device(number, &device); found != CUDA_SUCCESS) return found;
  *flags = device->primary_flags;
  *active = device->primary == nullptr ? 0 : 1;
  return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxSetFlags_v2(CUdevice number, unsigned flags) {
  if (flags > 0xff) return CUDA_ERROR_INVALID_VALUE;
  const std::lock_guard lock(process().mutex);
  DeviceState* device = nullptr;
  if (const CUresult found = find_device(number, &device); found != CUDA_SUCCESS) return found;
  device->primary_flags = flags;
  if (device->primary != nullptr) device->primary->flags = flags;
  return CUDA_SUCCESS;
}

}  // extern "C"
// NOLINTEND(readability-identifier-naming)
