// experimental/remote/internal/socket.h: TCP connections of the remote GPU. A peer that is silent
// for ten seconds is lost; a peer that works long is not, because its kernel answers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "regatta/base/core/result.h"
#include "regatta/base/core/units.h"
#include "regatta/base/os/unique_fd.h"

namespace regatta::remote {

// At "HOST:PORT".
Result<os::UniqueFd> connect_tcp(const std::string& address);
Result<os::UniqueFd> listen_tcp(const std::string& address);
// As os::enable_keepalive(), but also while a call is in progress, as connect_tcp() has it.
void set_silence_timeout(int fd);

bool send_all(int fd, const void* bytes, std::size_t count);
bool send_both(int fd, std::string_view first, std::string_view second);
// Reads no byte beyond. `is_patient`: at the socket's timeout it checks whether the peer is alive;
// otherwise the timeout is the end.
bool receive_all(int fd, void* into, std::size_t count, bool is_patient = true);
// Receives at least one byte; 0: the connection has ended.
std::size_t receive_some(int fd, void* into, std::size_t count, bool is_patient);

// Waits until the socket is ready for the events of poll(2). False: the deadline has passed, or the
// peer is lost.
bool wait_for_socket(int fd, short events, std::optional<Seconds> deadline);

// A text preceded by its length, which begins a connection; by what sends two parts, and by what
// receives all of some bytes.
using SendParts = std::function<bool(std::string_view first, std::string_view second)>;
using ReceiveAll = std::function<bool(void* into, std::size_t count)>;
bool send_text_by(const SendParts& send, std::string_view text);
bool send_refusal_by(const SendParts& send, const Error& error);
Result<std::string> receive_text_by(const ReceiveAll& receive);
inline constexpr std::uint32_t kLongestText = 64 << 10;
bool send_text(int fd, std::string_view text);
// An Error; the peer gets the sentence and whether its input was wrong.
bool send_refusal(int fd, const Error& error);
// A refusal of the peer is an Error, too: kInvalidInput or kConflict.
Result<std::string> receive_text(int fd, bool is_patient = true);

}  // namespace regatta::remote
