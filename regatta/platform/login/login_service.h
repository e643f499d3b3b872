// login/login_service.h: who sends a request: by an API token, or by the session of a browser,
// which begins with a password or with a token that is good for one login.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "regatta/base/core/result.h"
#include "regatta/base/core/units.h"
#include "regatta/base/http/event_loop.h"
#include "regatta/base/http/http_server.h"
#include "regatta/platform/api/access.h"
#include "regatta/platform/api/audited_exchange.h"
#include "regatta/platform/controller/controller_runtime.h"
#include "regatta/platform/login/oidc_settings.h"

namespace regatta::login {

struct LoginOptions {
  Seconds session_lifetime{12 * 3600.0};
  std::size_t sessions_max = 32;  // of one user; with one more the oldest ends
  std::optional<OidcSettings> oidc;
};

// Belongs to the loop's thread, as the runtime does, which outlives it.
class LoginService {
 public:
  LoginService(http::EventLoop& loop, controller::ControllerRuntime& runtime, LoginOptions options);
  ~LoginService();
  LoginService(const LoginService&) = delete;
  LoginService& operator=(const LoginService&) = delete;

  // By the header Authorization, else by the cookie. kNotFound: nobody that is known; kConflict: a
  // page of another origin sends the browser's cookie.
  Result<api::Caller> authenticate(const http::Request& request) const;
  // {"user", "password"} or {"once": TOKEN}: answers as GET /v1/session does, with the cookie.
  // Those who fail often are told to wait (429).
  void log_in(std::shared_ptr<api::AuditedExchange> exchange);
  // Ends the session of the cookie, and lets the browser forget it.
  void log_out(const std::shared_ptr<api::AuditedExchange>& exchange);
  // Sends the browser to the provider, and lets it in when it comes back. A user that the provider
  // knows is made, and has the role that it says; one that was made here stays as it is.
  // kUnsupported: there is no provider.
  void begin_oidc(const std::shared_ptr<api::AuditedExchange>& exchange);
  void finish_oidc(const std::shared_ptr<api::AuditedExchange>& exchange);
  // Hashes beside the loop, in whose thread `done` runs: api::HashPassword.
  void hash_password(std::string password, std::function<void(Result<std::string>)> done);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace regatta::login
