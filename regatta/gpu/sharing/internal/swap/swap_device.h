// sharing/internal/swap/swap_device.h: the operations of a device that swapping needs: constant
// addresses, memory that is mapped to them and unmapped, pinned host memory, and copies between the
// two.
#pragma once

#include <cstdint>
#include <optional>

namespace regatta::sharing {

class SwapDevice {
 public:
  using Home = void*;        // the owner of memory, in which copies run: a context
  using CopyHandle = void*;  // of a copy in progress; null: it could not be started
  enum class To : std::uint8_t { kHost, kDevice };

  SwapDevice() = default;
  SwapDevice(const SwapDevice&) = delete;
  SwapDevice& operator=(const SwapDevice&) = delete;
  virtual ~SwapDevice() = default;

  // Reserves addresses, in whole blocks of 2 MiB, without memory.
  virtual std::optional<std::uint64_t> reserve(std::uint64_t bytes) = 0;
  virtual void unreserve(std::uint64_t address, std::uint64_t bytes) = 0;
  // Maps device memory to the whole range; false, and nothing is mapped, without room.
  virtual bool map(std::uint64_t address, std::uint64_t bytes) = 0;
  virtual void unmap(std::uint64_t address, std::uint64_t bytes) = 0;

  virtual void* pin(Home home, std::uint64_t bytes) = 0;  // null: there is none
  virtual void unpin(Home home, void* memory) = 0;

  // Begins after the earlier copies of this home, or beside them.
  virtual CopyHandle copy(Home home, To to, std::uint64_t address, void* host,
                          std::uint64_t bytes) = 0;
  virtual bool wait(Home home, CopyHandle ticket) = 0;  // false: it failed
  // Waits for all work of the process in this home; false when that cannot be known, as during a
  // capture.
  virtual bool drain(Home home) = 0;
};

}  // namespace regatta::sharing
