#include "regatta/gpu/sharing/messages.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include <sys/socket.h>
#include <sys/time.h>

#include "regatta/base/os/socket.h"
#include "regatta/base/os/unique_fd.h"

namespace regatta::sharing {
namespace {

// Space for two descriptors and the sender.
struct alignas(cmsghdr) Control {
  char bytes[CMSG_SPACE(2 * sizeof(int)) + CMSG_SPACE(sizeof(ucred))] = {};
};

Error socket_error(const char* what) {
  if (errno == EAGAIN || errno == EWOULDBLOCK)
    return {Code::kTimeout, "the daemon does not answer"};
  return os::errno_error(what);
}

void read_control(msghdr& header, DaemonMessage& message) {
  std::size_t count = 0;
  for (cmsghdr* part = CMSG_FIRSTHDR(&header); part != nullptr; part = CMSG_NXTHDR(&header, part)) {
    if (part->cmsg_level != SOL_SOCKET) continue;
    if (part->cmsg_type == SCM_CREDENTIALS) {
      ucred sender{};
      std::memcpy(&sender, CMSG_DATA(part), sizeof sender);
      message.sender = sender.pid;
    }
    if (part->cmsg_type != SCM_RIGHTS) continue;
    const std::size_t fds = (part->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (std::size_t i = 0; i < fds; ++i) {
      int fd = -1;
      std::memcpy(&fd, CMSG_DATA(part) + i * sizeof fd, sizeof fd);
      os::UniqueFd owned(fd);
      if (count < message.fds.size()) message.fds[count++] = std::move(owned);
    }
  }
}

}  // namespace

ClientReply failed(const Error& error) {
  ClientReply reply{.status = ReplyStatus::kFailed, .code = static_cast<std::uint32_t>(error.code)};
  const std::size_t size = std::min(error.message.size(), sizeof reply.text - 1);
  std::memcpy(reply.text, error.message.data(), size);
  return reply;
}

Error to_error(const ClientReply& reply) {
  const auto code =
      static_cast<Code>(std::min(reply.code, static_cast<std::uint32_t>(Code::kUnsupported)));
  return {code, std::string(reply.text, ::strnlen(reply.text, sizeof reply.text))};
}

void set_socket_timeout(int socket, Seconds timeout) {
  timeval limit{};
  limit.tv_sec = static_cast<time_t>(timeout.value);
  limit.tv_usec =
      static_cast<suseconds_t>((timeout.value - static_cast<double>(limit.tv_sec)) * 1e6 + 1);
  limit.tv_usec = std::min<suseconds_t>(limit.tv_usec, 999'999);
  ::setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  ::setsockopt(socket, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
}

Result<os::UniqueFd> connect_to_daemon(const std::string& path, Seconds timeout) {
  REGATTA_TRY(address, os::unix_address(path));
  os::UniqueFd fd(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  if (!fd) return os::errno_error("cannot make a socket");
  set_socket_timeout(fd.get(), timeout);
  if (::connect(fd.get(), address.get(), address.size()) != 0) {
    const int reason = errno;
    if (reason == EACCES || reason == EPERM) {
      return Error{Code::kUnsupported, path + ": this user may not go there (" +
                                           os::errno_text(reason) +
                                           "); ask as root or as the daemon's user, or open the "
                                           "folders above it to all with chmod a+x"};
    }
    return Error{Code::kUnavailable,
                 path + ": no daemon answers there (" + os::errno_text(reason) +
                     "); start it with regatta gpu daemon, or name its socket with --socket"};
  }
  return fd;
}

Status send_message(int socket, std::string_view bytes, std::array<int, 2> fds) {
  iovec part{const_cast<char*>(bytes.data()), bytes.size()};
  Control control;
  msghdr header{};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  std::size_t count = 0;
  for (const int fd : fds) {
    if (fd >= 0) fds[count++] = fd;
  }
  if (count != 0) {
    header.msg_control = control.bytes;
    header.msg_controllen = CMSG_SPACE(count * sizeof(int));
    cmsghdr* rights = CMSG_FIRSTHDR(&header);
    rights->cmsg_level = SOL_SOCKET;
    rights->cmsg_type = SCM_RIGHTS;
    rights->cmsg_len = CMSG_LEN(count * sizeof(int));
    std::memcpy(CMSG_DATA(rights), fds.data(), count * sizeof(int));
  }
  ssize_t sent = 0;
  do {
    sent = ::sendmsg(socket, &header, MSG_NOSIGNAL);
  } while (sent < 0 && errno == EINTR);
  return sent < 0 ? Status(socket_error("cannot ask the daemon")) : Status();
}

Result<DaemonMessage> receive_message(int socket, std::size_t longest) {
  DaemonMessage message;
  message.bytes.resize(longest);
  iovec part{message.bytes.data(), message.bytes.size()};
  Control control;
  msghdr header{};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  header.msg_control = control.bytes;
  header.msg_controllen = sizeof control.bytes;
  ssize_t size = 0;
  do {
    size = ::recvmsg(socket, &header, MSG_CMSG_CLOEXEC);
  } while (size < 0 && errno == EINTR);
  if (size < 0) return socket_error("cannot hear the daemon");
  read_control(header, message);
  message.bytes.resize(static_cast<std::size_t>(size));
  message.lacks_fds = (header.msg_flags & MSG_CTRUNC) != 0;
  if ((header.msg_flags & MSG_TRUNC) != 0) {
    return Error{Code::kInvalidInput, "the message is longer than any that is known"};
  }
  return message;
}

}  // namespace regatta::sharing
