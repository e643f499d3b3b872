// login/internal/oidc_provider.h: an OpenID provider as its documents say, and its answers. Waits
// for the network, so it runs beside the loop.
#pragma once

#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "regatta/base/core/result.h"
#include "regatta/base/core/units.h"
#include "regatta/platform/login/internal/id_token.h"
#include "regatta/platform/login/oidc_settings.h"

namespace regatta::login {

// A login that is under way.
struct OidcAttempt {
  std::string nonce;
  std::string verifier;  // of PKCE
  std::string binding;   // hash of the cookie's secret
  Seconds until;
};

// Belongs to one thread. Documents are kept for an hour.
class OidcProvider {
 public:
  explicit OidcProvider(OidcSettings settings) : settings_(std::move(settings)) {}

  // The address to which a browser is sent.
  Result<std::string> authorization_url(const std::string& state, const OidcAttempt& attempt);
  // The claims of the user to whose login `code` belongs.
  Result<nlohmann::json> redeem(const std::string& code, const OidcAttempt& attempt);
  std::string redirect_uri() const { return settings_.address + "/v1/login/oidc/callback"; }

 private:
  Status look_up();
  Status fetch_keys();
  Result<nlohmann::json> fetch(const std::string& url) const;
  Result<std::string> request_token(const std::string& code, const OidcAttempt& attempt) const;

  OidcSettings settings_;
  std::string authorization_endpoint_;
  std::string token_endpoint_;
  std::string keys_endpoint_;
  std::vector<ProviderKey> keys_;
  Seconds looked_up_{-1e9};
  Seconds keys_time_{-1e9};
};

// `text` as a value of a form or query. Source: RFC 3986, section 2.3.
std::string form_text(std::string_view text);
// SHA-256 of `text` in base64url: the challenge of PKCE (RFC 7636, section 4.2).
std::string pkce_challenge(std::string_view verifier);

}  // namespace regatta::login
