// tests/standin/share.h: device memory shown to other processes and opened from them; under the
// lock.
#pragma once

#include <cstddef>
#include <cstdint>

#include "tests/standin/process.h"

namespace regatta::standin {

// The data that another process needs to open it. It fits into the driver's handles.
struct ShareHandle {
  std::uint64_t device = 0;  // which, whatever its ordinal is
  std::uint64_t share = 0;   // 0: none
  std::uint64_t inner = 0;   // where in the share the bytes begin
  std::uint64_t bytes = 0;
  std::uint64_t pid = 0;  // of the owner
};
static_assert(sizeof(ShareHandle) <= 64);

// For bytes of the device's arena.
ShareHandle show(DeviceState& device, std::uint64_t offset, std::uint64_t bytes);
// Before memory that was shown is freed. False: others use it, it must not be freed.
bool may_free(DeviceState& device, std::uint64_t share, std::uint64_t offset, std::uint64_t bytes);

// Another process's memory. `content` null: it is gone.
struct Opened {
  DeviceState* device = nullptr;
  std::uint64_t share = 0;
  std::byte* mapping = nullptr;
  std::uint64_t mapping_bytes = 0;
  std::byte* content = nullptr;
};
Opened open_share(const ShareHandle& ticket);
void close_share(const Opened& opened);
// Whether memory that mappings are made of was exported or imported; mapping.cc.
bool shares_mappings();

// A file descriptor that carries a ticket, and the ticket that one carries, share 0 when none.
int make_ticket_file(const ShareHandle& ticket);
ShareHandle read_ticket_file(int file);

// An address range for memory that was opened.
CUdeviceptr add_opened(const Opened& opened, std::uint64_t bytes, CUcontext context);

}  // namespace regatta::standin
