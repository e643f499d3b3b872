// probe/collector_connection.h: a prober's connection to the collector of all: lines go there while
// it is there, its orders come back, and nobody waits for it while it is not.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "regatta/base/core/result.h"
#include "regatta/base/core/units.h"
#include "regatta/network/probe/handshake.h"

namespace regatta::probe {

struct CollectorConnectionOptions {
  std::string collector;  // "unix:PATH" or "HOST:PORT"
  Handshake handshake;    // its clock is set when it is said
  Seconds again{1};       // between two attempts; five times that after a refusal
  // Hears in a sentence what goes wrong, once each, and that it is well again. From another thread.
  std::function<void(const std::string&)> note;
  // Hears the collector's lines, without their end; an error ends the connection. From the same
  // thread.
  std::function<Status(std::string_view)> hear;
};

// kInvalidInput for a place where nobody can ever be reported to: what open() refuses, a host that
// there is not, a socket in a folder that there is not. Asks name servers, so it may take seconds.
Status check_collector(const std::string& at);

class CollectorConnection {
 public:
  // Returns before the collector answers. kInvalidInput for what is no place.
  static Result<CollectorConnection> open(CollectorConnectionOptions options);
  ~CollectorConnection();
  CollectorConnection(CollectorConnection&&) noexcept;
  CollectorConnection& operator=(CollectorConnection&&) noexcept;

  // A whole line. Never waits: without a collector it is lost, and with one that does not read the
  // connection is.
  void tell(const std::string& line);

 private:
  struct Impl;
  explicit CollectorConnection(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace regatta::probe
