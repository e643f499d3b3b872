// heal/event_socket.h: the healer's Unix socket, lines of JSON in both directions: a client
// receives withdrawals and returns, and may report faults. Format: docs/formats/heal.md.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "regatta/base/core/result.h"
#include "regatta/base/os/unique_fd.h"
#include "regatta/network/heal/event_text.h"

namespace regatta::heal {

// Listens at `path`; replaces a socket without a listener. kConflict when a healer listens there,
// kInvalidInput when the path is not a socket.
Result<os::UniqueFd> listen_for_reports(const std::string& path);

// Drops a subscriber that does not read. Not thread safe.
class EventSocket {
 public:
  // Listens at `path` as above, and removes it with itself. `greeting`: the first line to each
  // subscriber.
  static Result<EventSocket> open(const std::string& path, std::function<std::string()> greeting);
  // With a listener that another process has too, which removes its path.
  static Result<EventSocket> share(os::UniqueFd listener, std::function<std::string()> greeting);
  ~EventSocket();
  EventSocket(EventSocket&&) noexcept;
  EventSocket& operator=(EventSocket&&) noexcept;

  // Readable when consume_reports() has work.
  int fd() const;
  // Accepts and drops subscribers; returns their reports. Answers any other line with
  // {"error": "..."}.
  std::vector<FaultReport> consume_reports(const topo::Graph& graph);
  // Sends a line to all subscribers.
  void broadcast(const std::string& line);
  std::size_t subscribers() const;

 private:
  struct Impl;
  explicit EventSocket(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace regatta::heal
