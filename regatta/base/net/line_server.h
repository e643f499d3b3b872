// net/line_server.h: a bounded server of lines: it accepts clients on a listening socket, gives
// their lines to its owner and sends lines back. No client can make it exceed its bounds or delay
// the others.
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

// Identifies a client of one server; never reused.
using ClientId = std::uint64_t;

struct LineServerOptions {
  std::size_t clients_max = 64;  // one more gets `refusal` and is closed
  std::size_t line_max = 65536;  // bytes of a line without its newline
  std::string refusal;           // without its newline
  // A client that has not sent a whole line after so long is closed; 0: no limit.
  Seconds first_line_limit;
  // A client that sends more is read more slowly, so that it waits; 0: no limit.
  double lines_per_second = 0;
  double burst_lines = 32;  // beyond that rate, after a pause; at least 1
};

// The owner's handlers; each may call send(), close() and set_line_max() of the server. An empty
// handler is not called.
struct LineHandlers {
  // `fd` is the client's socket; a handler may read its address and set its options.
  std::function<void(ClientId, int fd)> connected;
  // An error closes the connection.
  std::function<Status(ClientId, std::string_view)> line;
  // The client closed or was silent for too long (no error), sent a line that is too long, or a
  // handler failed (the error). Not called for clients that the owner closed. send() still
  // reaches the client for a last line.
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
  // Waits at most `limit` for events and handles them; reads one block of 64 KiB from each ready
  // client whose lines it has handled. Returns whether a signal ended the wait. kUnavailable when
  // the system cannot wait.
  Result<bool> serve(Seconds limit, const LineHandlers& handlers);

  // `lines` end with a newline. Never waits: a client whose socket buffer does not hold all of it
  // is closed, for part of a line would spoil the next one. False when the client is gone.
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
