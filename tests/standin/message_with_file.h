// tests/standin/message_with_file.h: a message of fixed size over a socket that keeps messages
// apart, with a descriptor along. Source: unix(7).
#pragma once

#include <cstddef>
#include <cstring>

#include <sys/socket.h>
#include <sys/types.h>

namespace regatta::standin {

// As send(2), with MSG_NOSIGNAL. `file`: sent along, -1 for none.
inline ssize_t send_with_file(int socket, const void* bytes, std::size_t count, int file,
                              int flags = 0) {
  iovec part{const_cast<void*>(bytes), count};
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
  return ::sendmsg(socket, &message, flags | MSG_NOSIGNAL);
}

// As recv(2); `file` is the caller's to close, -1 where none came along.
inline ssize_t receive_with_file(int socket, void* bytes, std::size_t count, int& file,
                                 int flags = 0) {
  iovec part{bytes, count};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  file = -1;
  const ssize_t received = ::recvmsg(socket, &message, flags | MSG_CMSG_CLOEXEC);
  const cmsghdr* const header = received < 0 ? nullptr : CMSG_FIRSTHDR(&message);
  if (header != nullptr && header->cmsg_level == SOL_SOCKET && header->cmsg_type == SCM_RIGHTS)
    std::memcpy(&file, CMSG_DATA(header), sizeof file);
  return received;
}

}  // namespace regatta::standin
