#include "regatta/gpu/sharing/control.h"

#include <algorithm>
#include <cstring>
#include <iterator>

#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include "regatta/base/core/text.h"
#include "regatta/gpu/sharing/messages.h"

namespace regatta::sharing {

Result<regatta_share_policy> parse_policy(const std::string& name) {
  const auto found = std::find(std::begin(kPolicyNames), std::end(kPolicyNames), name);
  if (found != std::end(kPolicyNames))
    return static_cast<regatta_share_policy>(found - std::begin(kPolicyNames));
  return Error{
      Code::kInvalidInput,
      fmt::format("policy '{}': give fixed, equal, weight or burst-weight", printable(name, 40))};
}

Result<std::string> send_control_request(const std::string& socket, const std::string& request,
                                         os::UniqueFd* page) {
  constexpr Seconds kTimeout{10.0};
  REGATTA_TRY(fd, connect_to_daemon(socket, kTimeout));
  REGATTA_TRY_DO(send_message(fd.get(), request));
  REGATTA_TRY(message, receive_message(fd.get(), sizeof(ClientReply)));
  ClientReply reply;
  if (message.bytes.size() != sizeof reply)
    return Error{Code::kUnavailable, socket + ": the daemon went away; see its messages"};
  std::memcpy(&reply, message.bytes.data(), sizeof reply);
  if (reply.status != ReplyStatus::kGranted) return to_error(reply);
  struct stat status {};
  if (!message.fds[0] || ::fstat(message.fds[0].get(), &status) != 0)
    return Error{Code::kUnavailable, socket + ": the daemon sent no text; is it of this version"};
  std::string text(static_cast<std::size_t>(status.st_size), '\0');
  if (::pread(message.fds[0].get(), text.data(), text.size(), 0) != status.st_size)
    return os::errno_error("cannot read what the daemon sent");
  if (page != nullptr) *page = std::move(message.fds[1]);
  return text;
}

}  // namespace regatta::sharing
