// heal/event_socket.h: the healer's Unix socket, lines of JSON in both directions: whoever connects
// hears what is withdrawn and returned, and may report what it saw broken. The format:
// docs/formats/heal.md.
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

// Nobody waits for a subscriber: one that does not read is dropped. Not thread safe.
class EventSocket {
 public:
  // Takes the place of a socket that nobody listens on. kConflict when a healer listens there,
  // kInvalidInput when something that is no socket has the name.
  // `greeting`: what a subscriber is told first.
  static Result<EventSocket> open(const std::string& path, std::function<std::string()> greeting);
  ~EventSocket();
  EventSocket(EventSocket&&) noexcept;
  EventSocket& operator=(EventSocket&&) noexcept;

  // Readable when take() has something to do.
  int fd() const;
  // Lets subscribers in and out; the reports that came. A line that is no report is answered with
  // {"error": "..."}.
  std::vector<FaultReport> take(const topo::Graph& graph);
  // One line to all.
  void tell(const std::string& line);
  std::size_t subscribers() const;

 private:
  struct Impl;
  explicit EventSocket(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace regatta::heal
