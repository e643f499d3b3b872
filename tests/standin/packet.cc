#include "tests/standin/packet.h"

#include <cstring>

#include <sys/socket.h>

namespace regatta::standin {

ssize_t send_packet(int socket, const Packet& packet, int file, int flags) {
  iovec part{const_cast<Packet*>(&packet), sizeof packet};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof file)] = {};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  if (file >= 0) {
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    cmsghdr* const header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof file);
    std::memcpy(CMSG_DATA(header), &file, sizeof file);
  }
  return sendmsg(socket, &message, flags | MSG_NOSIGNAL);
}

ssize_t receive_packet(int socket, Packet* packet, os::UniqueFd* file, int flags) {
  iovec part{packet, sizeof *packet};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  const ssize_t bytes = recvmsg(socket, &message, flags | MSG_CMSG_CLOEXEC);
  const cmsghdr* const header = bytes < 0 ? nullptr : CMSG_FIRSTHDR(&message);
  if (header != nullptr && header->cmsg_type == SCM_RIGHTS) {
    int received = -1;
    std::memcpy(&received, CMSG_DATA(header), sizeof received);
    file->reset(received);
  }
  return bytes;
}

}  // namespace regatta::standin
