// sharing/internal/swap/swap_device.h: what moving memory needs of a device: addresses that stay,
// memory that is put under them and taken away, pinned memory of the host, and copies between the
// two.
#pragma once

#include <cstdint>
#include <optional>

namespace regatta::sharing {

class SwapDevice {
 public:
  using Home = void*;        // what memory belongs to and copies run in: a context
  using CopyHandle = void*;  // of a copy under way; null: it could not be started
  enum class To : std::uint8_t { kHost, kDevice };

  SwapDevice() = default;
  SwapDevice(const SwapDevice&) = delete;
  SwapDevice& operator=(const SwapDevice&) = delete;
  virtual ~SwapDevice() = default;

  // Addresses, of whole blocks of 2 MiB, with nothing under them.
  virtual std::optional<std::uint64_t> reserve(std::uint64_t bytes) = 0;
  virtual void unreserve(std::uint64_t address, std::uint64_t bytes) = 0;
  // Memory of the device for the whole range; false, and nothing is taken, when it has no room.
  virtual bool map(std::uint64_t address, std::uint64_t bytes) = 0;
  virtual void unmap(std::uint64_t address, std::uint64_t bytes) = 0;

  virtual void* pin(Home home, std::uint64_t bytes) = 0;  // null: there is none
  virtual void unpin(Home home, void* memory) = 0;

  // Begins after the copies of this home before it, or beside them.
  virtual CopyHandle copy(Home home, To to, std::uint64_t address, void* host,
                          std::uint64_t bytes) = 0;
  virtual bool wait(Home home, CopyHandle ticket) = 0;  // false: it failed
  // Waits for all work of the process in this home; false when nobody can say, as in a capture.
  virtual bool drain(Home home) = 0;
};

}  // namespace regatta::sharing
