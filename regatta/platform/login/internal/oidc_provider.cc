#include "regatta/platform/login/internal/oidc_provider.h"

#include <array>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <sodium.h>

#include "regatta/base/core/json.h"
#include "regatta/base/core/text.h"
#include "regatta/base/http/http_client.h"
#include "regatta/base/os/clock.h"
#include "regatta/platform/login/internal/id_token.h"

namespace regatta::login {
namespace {

constexpr Seconds kKept{3600};
constexpr Seconds kKeysPause{60};  // between two requests for keys that are not known
constexpr Seconds kResponseLimit{10};
constexpr JsonLimits kAnswerLimits{.size_max = 1 << 20, .depth_max = 16};

struct ProviderUrl {
  std::string server;
  std::string target;
};

Result<ProviderUrl> split_url(const std::string& url) {
  constexpr std::string_view kScheme = "https://";
  if (!url.starts_with(kScheme))
    return Error{Code::kInvalidInput,
                 fmt::format("the provider's address '{}' is not https", printable(url, 80))};
  const std::size_t slash = url.find('/', kScheme.size());
  if (slash == std::string::npos) return ProviderUrl{url, "/"};
  return ProviderUrl{url.substr(0, slash), url.substr(slash)};
}

Result<http::Response> send(const OidcSettings& settings, const std::string& method,
                            const std::string& url, const http::Headers& headers,
                            std::string_view body) {
  REGATTA_TRY(parts, split_url(url));
  REGATTA_TRY(client, http::HttpClient::create({.url = parts.server,
                                                .ca = settings.ca,
                                                .ca_hash = {},
                                                .certificate_chain = {},
                                                .private_key = {},
                                                .response_limit = kResponseLimit}));
  REGATTA_TRY(response, client.send(method, parts.target, headers, body));
  if (response.status != 200)
    return Error{Code::kUnavailable, fmt::format("the provider answers {} with status {}",
                                                 parts.target.substr(0, 80), response.status)};
  return response;
}

}  // namespace

std::string form_text(std::string_view text) {
  std::string out;
  for (const char letter : text) {
    const bool is_plain = (letter >= 'a' && letter <= 'z') || (letter >= 'A' && letter <= 'Z') ||
                          (letter >= '0' && letter <= '9') ||
                          std::string_view("-._~").find(letter) != std::string_view::npos;
    if (is_plain)
      out += letter;
    else
      fmt::format_to(std::back_inserter(out), "%{:02X}", static_cast<unsigned char>(letter));
  }
  return out;
}

std::string pkce_challenge(std::string_view verifier) {
  std::array<unsigned char, crypto_hash_sha256_BYTES> hash;
  crypto_hash_sha256(hash.data(), reinterpret_cast<const unsigned char*>(verifier.data()),
                     verifier.size());
  constexpr int kVariant = sodium_base64_VARIANT_URLSAFE_NO_PADDING;
  std::array<char, sodium_base64_ENCODED_LEN(crypto_hash_sha256_BYTES, kVariant)> text;
  sodium_bin2base64(text.data(), text.size(), hash.data(), hash.size(), kVariant);
  return text.data();
}

Result<nlohmann::json> OidcProvider::fetch(const std::string& url) const {
  REGATTA_TRY(response, send(settings_, "GET", url, {{"Accept", "application/json"}}, ""));
  REGATTA_TRY(root, JsonReader::parse(response.body, "the provider's answer", kAnswerLimits));
  return root.raw();
}

Status OidcProvider::look_up() {
  const Seconds now = os::monotonic_now();
  if (now - looked_up_ < kKept) return {};
  REGATTA_TRY(found, fetch(settings_.issuer + "/.well-known/openid-configuration"));
  if (!found.is_object() || text_at(found, "issuer") != settings_.issuer)
    return Error{
        Code::kUnavailable,
        fmt::format("the provider calls itself '{}'; write that as issuer",
                    found.is_object() ? printable(text_at(found, "issuer"), 80) : std::string())};
  authorization_endpoint_ = text_at(found, "authorization_endpoint");
  token_endpoint_ = text_at(found, "token_endpoint");
  keys_endpoint_ = text_at(found, "jwks_uri");
  for (const std::string& url : {authorization_endpoint_, token_endpoint_, keys_endpoint_})
    REGATTA_TRY_DO(split_url(url));
  REGATTA_TRY_DO(fetch_keys());
  looked_up_ = now;
  return {};
}

Status OidcProvider::fetch_keys() {
  keys_time_ = os::monotonic_now();
  REGATTA_TRY(response, send(settings_, "GET", keys_endpoint_, {}, ""));
  REGATTA_TRY(keys, parse_provider_keys(response.body));
  keys_ = std::move(keys);
  return {};
}

Result<std::string> OidcProvider::authorization_url(const std::string& state,
                                                    const OidcAttempt& attempt) {
  REGATTA_TRY_DO(look_up());
  return fmt::format(
      "{}{}response_type=code&scope=openid%20profile&client_id={}&redirect_uri={}&state={}&nonce={}"
      "&code_challenge={}&code_challenge_method=S256",
      authorization_endpoint_, authorization_endpoint_.find('?') == std::string::npos ? "?" : "&",
      form_text(settings_.client_id), form_text(redirect_uri()), state, attempt.nonce,
      pkce_challenge(attempt.verifier));
}

Result<std::string> OidcProvider::request_token(const std::string& code,
                                                const OidcAttempt& attempt) const {
  const std::string body = fmt::format(
      "grant_type=authorization_code&code={}&redirect_uri={}&client_id={}&code_verifier={}",
      form_text(code), form_text(redirect_uri()), form_text(settings_.client_id), attempt.verifier);
  const std::string secret =
      http::base64(form_text(settings_.client_id) + ":" + form_text(settings_.client_secret));
  REGATTA_TRY(response, send(settings_, "POST", token_endpoint_,
                             {{"Content-Type", "application/x-www-form-urlencoded"},
                              {"Accept", "application/json"},
                              {"Authorization", "Basic " + secret}},
                             body));
  REGATTA_TRY(root, JsonReader::parse(response.body, "the provider's answer", kAnswerLimits));
  if (!root.raw().is_object())
    return Error{Code::kUnavailable, "the provider's answer holds no token"};
  return text_at(root.raw(), "id_token");
}

Result<nlohmann::json> OidcProvider::redeem(const std::string& code, const OidcAttempt& attempt) {
  REGATTA_TRY_DO(look_up());
  REGATTA_TRY(token, request_token(code, attempt));
  const TokenTerms terms{
      .issuer = settings_.issuer, .client = settings_.client_id, .nonce = attempt.nonce};
  const auto now = [] { return static_cast<std::int64_t>(os::system_now().value); };
  auto claims = verify_id_token(token, keys_, terms, now());
  const bool is_key_new = !claims && claims.error().code == Code::kNotFound &&
                          os::monotonic_now() - keys_time_ > kKeysPause;
  if (!is_key_new) return claims;
  REGATTA_TRY_DO(fetch_keys());
  return verify_id_token(token, keys_, terms, now());
}

}  // namespace regatta::login
