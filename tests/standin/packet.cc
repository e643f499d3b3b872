#include "tests/standin/packet.h"

#include "tests/standin/message_with_file.h"

namespace regatta::standin {

ssize_t send_packet(int socket, const Packet& packet, int file, int flags) {
  return send_with_file(socket, &packet, sizeof packet, file, flags);
}

ssize_t receive_packet(int socket, Packet* packet, os::UniqueFd* file, int flags) {
  int received = -1;
  const ssize_t bytes = receive_with_file(socket, packet, sizeof *packet, received, flags);
  if (received >= 0) file->reset(received);
  return bytes;
}

}  // namespace regatta::standin
