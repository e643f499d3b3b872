// tests/standin/arena.h: where the bytes of a process's device memory really are: one sparse memory
// file for each device, of which the device grants 2 MiB blocks. As in the driver, small
// allocations share blocks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "regatta/base/os/unique_fd.h"
#include "tests/standin/device_connection.h"

namespace regatta::standin {

class Arena {
 public:
  static constexpr std::uint64_t kBlock = 2ULL << 20;

  // `device_bytes`: what the device has. The link outlives the arena.
  bool open(DeviceConnection& link, std::uint64_t device_bytes);
  // None: the device has no room.
  std::optional<std::uint64_t> allocate(std::uint64_t bytes);
  void free(std::uint64_t offset, std::uint64_t bytes);
  std::byte* content(std::uint64_t offset) const { return base_ + offset; }
  // Where the driver maps it: blocks at multiples of their size, as in the driver. Nobody can touch
  // what is there.
  std::uint64_t address(std::uint64_t offset) const { return addresses_ + offset; }
  // Takes all that was allocated out of the file, and puts it back.
  void save();
  void restore();
  std::uint64_t held_bytes() const;
  // The part of the file that nobody else's bytes lie in when these lie there: what can be shown
  // to other processes.
  struct Whole {
    std::uint64_t offset = 0;
    std::uint64_t bytes = 0;
    bool is_shared = false;  // among small allocations
  };
  static Whole whole_of(std::uint64_t offset, std::uint64_t bytes);

 private:
  using Ranges = std::map<std::uint64_t, std::uint64_t>;  // offset -> bytes, free, never adjacent

  std::optional<std::uint64_t> allocate_blocks(std::uint64_t bytes);
  void free_blocks(std::uint64_t offset, std::uint64_t bytes);

  struct Saved {
    std::uint64_t offset = 0;
    std::vector<std::byte> bytes;
  };

  DeviceConnection* link_ = nullptr;
  os::UniqueFd file_;
  std::byte* base_ = nullptr;
  std::uint64_t addresses_ = 0;
  Ranges free_blocks_;
  Ranges free_small_;
  std::uint64_t all_bytes_ = 0;
  std::vector<Saved> saved_;
};

}  // namespace regatta::standin
