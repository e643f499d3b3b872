// login/internal/oidc_login.h: logins at an OpenID provider: authorization code with PKCE, state
// and nonce. Sources: OpenID Connect Core 1.0; RFC 6749, 7636, 9207, 9700.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "regatta/base/http/event_loop.h"
#include "regatta/platform/api/audited_exchange.h"
#include "regatta/platform/login/oidc_settings.h"

namespace regatta::login {

// A user as the provider's token says.
struct OidcUser {
  std::string name;
  std::string subject;  // issuer and its id of the user, which is never given to another
  identity::AccessRole role = identity::AccessRole::kViewer;
};

// Belongs to the loop's thread; asks the provider in a thread of its own.
class OidcLogin {
 public:
  OidcLogin(http::EventLoop& loop, OidcSettings settings);
  ~OidcLogin();
  OidcLogin(const OidcLogin&) = delete;
  OidcLogin& operator=(const OidcLogin&) = delete;

  // Sends the browser to the provider, with a cookie that only this browser has.
  void begin(const std::shared_ptr<api::AuditedExchange>& exchange);
  // The browser comes back: `done` gets the user, or the exchange is answered with what is wrong.
  // Each login comes back once.
  void finish(const std::shared_ptr<api::AuditedExchange>& exchange,
              std::function<void(const OidcUser&)> done);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace regatta::login
