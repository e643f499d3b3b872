// rdma/memory.h: memory that a device may reach.
#pragma once

#include <cstddef>
#include <cstdint>

#include "regatta/base/core/result.h"

namespace regatta::rdma {

// Keys of registered memory that a device needs beside the address.
struct MemoryKeys {
  std::uint32_t local = 0;
  std::uint32_t remote = 0;
};

struct MemoryRange {
  const std::byte* data = nullptr;
  std::size_t bytes = 0;
  bool is_writable = false;  // by the other end
};

// Registers memory with the device, or in a test.
class MemoryRegistrar {
 public:
  MemoryRegistrar() = default;
  MemoryRegistrar(const MemoryRegistrar&) = delete;
  MemoryRegistrar& operator=(const MemoryRegistrar&) = delete;
  virtual ~MemoryRegistrar() = default;

  struct Registered {
    MemoryKeys keys;
    void* handle = nullptr;
  };
  virtual Result<Registered> add(const MemoryRange& range) = 0;
  virtual void remove(void* handle) = 0;
};

}  // namespace regatta::rdma
