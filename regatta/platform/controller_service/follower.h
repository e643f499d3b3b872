// controller_service/follower.h: a controller while another one leads: it knows the leader and
// sends everybody there.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "regatta/base/core/result.h"
#include "regatta/base/http/event_loop.h"
#include "regatta/base/http/http_message.h"
#include "regatta/base/http/http_server.h"

namespace regatta::controller_service {

// 503: nobody leads at the moment; the next controller does within seconds.
http::Response no_leader();

// Belongs to the loop's thread.
class Follower {
 public:
  // Serves with a certificate of the authority in `folder`; `hosts` as in ServiceOptions.
  static Result<std::unique_ptr<Follower>> open(http::EventLoop& loop, const std::string& folder,
                                                const std::vector<std::string>& hosts,
                                                const http::ServerOptions& server);
  ~Follower();
  Follower(const Follower&) = delete;
  Follower& operator=(const Follower&) = delete;

  std::uint16_t port() const;
  // The URL of the leader; "": there is none now. Each request gets 307 to the same path there, or
  // no_leader().
  void set_leader(std::string url);

 private:
  struct Impl;
  explicit Follower(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace regatta::controller_service
