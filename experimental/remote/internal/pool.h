// experimental/remote/internal/pool.h: chooses the GPU of several servers for a slice. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "regatta/base/core/result.h"
#include "regatta/base/core/units.h"

namespace regatta::remote {

struct PoolDevice {
  std::string server;  // HOST:PORT
  int gpu = 0;
  std::optional<Bytes> memory;       // none: not known
  std::optional<Bytes> memory_free;  // likewise: unlimited
  unsigned compute_free_ppm = 0;     // share of the server's time; 1,000,000 is all
  int tenants = 0;
  bool has_rdma = false;  // the server
};

struct SliceRequirements {
  Bytes memory{0};
  unsigned compute_ppm = 0;
  bool needs_rdma = false;
};

// The device with the least memory left over, then the least time, then by the server's name and
// the GPU's number. kExhausted names the largest slice that would fit; kUnsupported: RDMA is
// required and no server has it.
Result<std::size_t> choose_device(const std::vector<PoolDevice>& devices,
                                  const SliceRequirements& slice);

// Parses a server's answer: the JSON of `regatta gpu ps`, and whether it has RDMA.
Result<std::vector<PoolDevice>> pool_devices(const std::string& server, const std::string& listing);

}  // namespace regatta::remote
