// experimental/remote/internal/tls_channel.h: TLS 1.3 over a TCP connection, by a secret that both
// ends have (an external pre-shared key) and fresh keys of each connection. There are no
// certificates: who lacks the secret is no peer. Source: RFC 8446, section 2.2; OpenSSL 3.0.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "experimental/remote/internal/channel.h"
#include "regatta/base/core/result.h"
#include "regatta/base/core/units.h"
#include "regatta/base/os/unique_fd.h"

namespace regatta::remote {

// Both ends know the key, under a name that is no secret.
struct SharedSecret {
  std::string identity;
  std::string key;  // 32 bytes
};

// Made of the operator's token, of a reservation's ticket, and of a program's key.
SharedSecret secret_of_token(std::string_view token);
SharedSecret secret_of_ticket(std::string_view ticket);
SharedSecret secret_of_program(std::string_view key);

// kExact receives no byte beyond what is asked for, so that the connection may be released.
enum class TlsReading : std::uint8_t { kExact, kAhead };

// Both give up after `timeout`, however many bytes come. kUnsupported: the peer has another secret;
// kUnavailable: it ends the connection, or does not answer.
Result<std::unique_ptr<StreamChannel>> connect_tls(os::UniqueFd fd, const SharedSecret& secret,
                                                   Seconds timeout,
                                                   TlsReading reading = TlsReading::kExact);
// The key of an identity; nothing: it is unknown.
using FindKey = std::function<std::optional<std::string>(std::string_view identity)>;
Result<std::unique_ptr<StreamChannel>> accept_tls(os::UniqueFd fd, const FindKey& find_key,
                                                  Seconds timeout,
                                                  TlsReading reading = TlsReading::kExact);

}  // namespace regatta::remote
