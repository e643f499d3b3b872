// tests/standin/pool.h: pools of device memory that streams take from and give back in their order.
#pragma once

#include <cstdint>
#include <vector>

#include "tests/standin/process.h"

namespace regatta::standin {

// Free for its stream at once, for others when the stream has done `sequence` operations.
struct PoolBlock {
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
  CUstream stream = nullptr;
  std::uint64_t sequence = 0;
};

// Under the lock.
bool is_pool(CUmemoryPool pool);
CUmemoryPool add_pool(const CUmemPoolHandle_st& pool);
// Under the lock: frees what nobody may still use until the pool holds no more than `keep_bytes`.
void trim_pool(CUmemPoolHandle_st& pool, std::uint64_t keep_bytes);

}  // namespace regatta::standin

// NOLINTNEXTLINE(readability-identifier-naming): the name is the driver's
struct CUmemPoolHandle_st {
  regatta::standin::DeviceState* device = nullptr;
  std::uint64_t threshold = 0;  // what trims by themselves leave
  std::uint64_t reserved = 0;
  std::uint64_t reserved_high = 0;
  std::uint64_t used = 0;
  std::uint64_t used_high = 0;
  std::vector<regatta::standin::PoolBlock> free;
  int handle_types = 0;      // that it can be exported as
  bool is_imported = false;  // another process's: gives nothing
};
