// login/internal/id_token.h: signed statements of an OpenID provider about who logs in. Signatures
// are OpenSSL's. Sources: OpenID Connect Core 1.0, section 3.1.3.7; RFC 7515, 7517, 7518, 8725.
// Pure.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "regatta/base/core/result.h"
#include "regatta/base/core/units.h"

struct evp_pkey_st;

namespace regatta::login {

// A text of the object; "" where it is none.
std::string text_at(const nlohmann::json& object, const char* key);

// base64url without padding (RFC 4648, section 5); kInvalidInput for anything else.
Result<std::string> decode_base64url(std::string_view text);

// A public key of the provider, for one of the two algorithms that are taken. Neither "none" nor
// one with a shared secret is among them, whatever a token says.
struct ProviderKey {
  std::string id;         // kid; may be empty
  std::string algorithm;  // RS256 or ES256
  std::shared_ptr<evp_pkey_st> key;
};
// The keys of a JWK set that are RSA of 2048 to 8192 bits or of the curve P-256, and that sign;
// others are left out. kInvalidInput where it is no JWK set.
Result<std::vector<ProviderKey>> parse_provider_keys(std::string_view text);

struct TokenTerms {
  std::string issuer;
  std::string client;  // our id at the provider
  std::string nonce;   // of this login
  Seconds skew{60};    // by which the two clocks may differ
};

// The claims of `token`, once signature, issuer, audience, times and nonce are right; kInvalidInput
// says which is not, and kNotFound: no key of its id, so that new keys may be asked for. `now`:
// Unix time.
Result<nlohmann::json> verify_id_token(std::string_view token, const std::vector<ProviderKey>& keys,
                                       const TokenTerms& terms, std::int64_t now);

}  // namespace regatta::login
