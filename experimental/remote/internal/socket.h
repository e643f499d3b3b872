// experimental/remote/internal/socket.h: TCP connections of the remote GPU. A peer that is silent
// for ten seconds is lost; a peer that works long is not, because its kernel answers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "regatta/base/core/result.h"
#include "regatta/base/os/unique_fd.h"

namespace regatta::remote {

// At "HOST:PORT".
Result<os::UniqueFd> connect_tcp(const std::string& address);
Result<os::UniqueFd> listen_tcp(const std::string& address);
// The end of os::enable_keepalive() also while something is under way, as connect_tcp() has it.
void set_silence_timeout(int fd);

bool send_all(int fd, const void* bytes, std::size_t count);
bool send_both(int fd, std::string_view first, std::string_view second);
// With nothing read beyond. `is_patient`: the socket's own time limit means to look whether the
// peer is there; otherwise it is the end.
bool receive_all(int fd, void* into, std::size_t count, bool is_patient = true);
// At least one byte; 0: it is over.
std::size_t receive_some(int fd, void* into, std::size_t count, bool is_patient);

// A text with its length in front, before anything else is said on a connection.
inline constexpr std::uint32_t kLongestText = 64 << 10;
bool send_text(int fd, std::string_view text);
// An Error, of which the peer hears the sentence and whether its input was wrong.
bool send_refusal(int fd, const Error& error);
// An Error is also what the peer refused: kInvalidInput or kConflict.
Result<std::string> receive_text(int fd, bool is_patient = true);

}  // namespace regatta::remote
