// tests/standin/shares.h: device memory that its owner shows to other processes. While another one
// has it open it lives on, whatever becomes of the owner.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "regatta/base/os/unique_fd.h"
#include "tests/standin/device.h"

namespace regatta::standin {

struct Share {
  ClientId owner = 0;   // 0: it is gone, or has given the memory up
  ClientId holder = 0;  // then: the one of the users that has the bytes
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
  os::UniqueFd file;  // the owner's, in which the bytes lie
  std::map<ClientId, int> users;
};

class Shares {
 public:
  explicit Shares(Device& device) : device_(device) {}

  void add_file(ClientId client, os::UniqueFd file);  // in which its memory lies
  bool has_file(ClientId client) const { return files_.contains(client); }
  // The number of a range of the client's file; the same for the same range. 0: it has no file.
  std::uint64_t show(ClientId owner, std::uint64_t offset, std::uint64_t bytes);
  // Null: there is no such share.
  const Share* open(ClientId user, std::uint64_t id);
  void close(ClientId user, std::uint64_t id);
  // The owner frees it. True: others use it; one of them has its bytes from now on, unless the
  // owner `keeps_bytes`.
  bool give_up(ClientId owner, std::uint64_t id, bool keeps_bytes);
  // Before the device forgets the client.
  void remove_client(ClientId client);

 private:
  // Nobody owns it any more: the bytes of `from` are one of the users' now.
  void pass_on(Share& share, ClientId from);

  Device& device_;
  std::map<ClientId, os::UniqueFd> files_;
  std::map<std::uint64_t, Share> shares_;
  std::uint64_t last_id_ = 0;
};

}  // namespace regatta::standin
