// net/line_server.h: one bounded server of lines: it accepts clients on a listening socket, gives
// their lines to its owner and sends lines back. Nobody can make it hold more than its bounds, and
// no client keeps the others waiting.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "regatta/base/core/result.h"
#include "regatta/base/core/units.h"
#include "regatta/base/os/unique_fd.h"

namespace regatta::net {

// Identifies a client of one server; never used again.
using ClientId = std::uint64_t;

struct LineServerOptions {
  std::size_t clients_max = 64;  // one more is told `refusal` and closed
  std::size_t line_max = 65536;  // bytes of a line without its newline
  std::string refusal;           // without its newline
};

// The owner's handlers; each may call send(), close() and set_line_max() of the server. An empty
// handler is not called.
struct LineHandlers {
  // `fd` is the client's socket: for its address or its options.
  std::function<void(ClientId, int fd)> connected;
  // An error closes the connection.
  std::function<Status(ClientId, std::string_view)> line;
  // The client has left (no error), sent a line that is too long, or a handler failed (the error).
  // Not called for those that the owner closed. The client can still be sent a last line.
  std::function<void(ClientId, const Status&)> closed;
};

// Not thread safe.
class LineServer {
 public:
  // `listener`: a listening stream socket that does not block.
  static Result<LineServer> create(os::UniqueFd listener, LineServerOptions options);
  LineServer(LineServer&&) noexcept;
  LineServer& operator=(LineServer&&) noexcept;
  ~LineServer();

  // Readable when serve() has something to do.
  int fd() const;
  // Waits at most `limit` for something to do and does it: of each client that has sent something
  // it takes one block of 64 KiB. Whether a signal ended the wait. kUnavailable where the system
  // cannot wait.
  Result<bool> serve(Seconds limit, const LineHandlers& handlers);

  // `lines` end with a newline. Never waits: a client that does not take all of it at once is
  // closed, for part of a line would spoil the next one. False where it is gone.
  bool send(ClientId client, std::string_view lines);
  void send_to_all(std::string_view lines);
  void close(ClientId client);
  // Holds from the client's next line on.
  void set_line_max(ClientId client, std::size_t line_max);
  std::size_t client_count() const;

 private:
  struct Impl;
  explicit LineServer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace regatta::net
