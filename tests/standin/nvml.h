// tests/standin/nvml.h: the devices that the stand-in's libnvidia-ml.so.1 watches: those in
// REGATTA_STANDIN, each over a connection of its own.
#pragma once

#include <cstdint>

#include "tests/standin/device_connection.h"
#include "tests/standin/nvml_abi.h"

// NOLINTNEXTLINE(readability-identifier-naming): the name is the library's
struct nvmlDevice_st {
  unsigned index = 0;
  regatta::standin::DeviceConnection link;
  std::uint64_t bytes = 0;
};

namespace regatta::standin {

// The first checks of every call about a device: not started, no such device, nowhere to write,
// lost.
nvmlReturn_t check(nvmlDevice_t device, const void* target);

}  // namespace regatta::standin
