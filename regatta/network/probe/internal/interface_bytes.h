// probe/internal/interface_bytes.h: how many bytes the interfaces of a network namespace have
// carried: whether anything moved at all, for a few microseconds. Acts: Linux.
// Source: rtnetlink(7), linux/if_link.h.
#pragma once

#include <cstdint>
#include <vector>

#include "regatta/base/core/result.h"
#include "regatta/base/os/unique_fd.h"

namespace regatta::probe {

// Counters of the namespace of the thread that called open(). Not thread safe.
class InterfaceBytes {
 public:
  // Fails if the kernel does not report them (before 4.7).
  static Result<InterfaceBytes> open();

  // Finds the interfaces with addresses: connections end there, and packets that pass several, such
  // as a port and its bridge, are counted once.
  Status list_interfaces();
  // Bytes sent and received by all of them, since they exist.
  Result<std::uint64_t> read();

 private:
  explicit InterfaceBytes(os::UniqueFd socket) : socket_(std::move(socket)), buffer_(65536) {}
  template <typename Handle>
  Status dump(const void* question, std::size_t bytes, Handle&& handle);

  os::UniqueFd socket_;
  std::vector<char> buffer_;
  std::uint32_t sequence_ = 0;
  std::vector<unsigned> interfaces_;  // by number, sorted
};

}  // namespace regatta::probe
