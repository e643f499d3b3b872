// tests/standin/packet.h: packets over the socket between a process and the device; some bring a
// file along, which is how processes share memory.
#pragma once

#include <sys/types.h>

#include "regatta/base/os/unique_fd.h"
#include "tests/standin/wire.h"

namespace regatta::standin {

// As send(2), with MSG_NOSIGNAL. `file`: sent along, -1 for none.
ssize_t send_packet(int socket, const Packet& packet, int file = -1, int flags = 0);
// As recv(2); `file` takes what came along, if anything did.
ssize_t receive_packet(int socket, Packet* packet, os::UniqueFd* file, int flags = 0);

}  // namespace regatta::standin
