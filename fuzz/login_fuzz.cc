// fuzz/login_fuzz.cc: any bytes as a header Cookie, as what a browser says of its page, as accepted
// encodings, as a line of the audit, as a provider's token and its keys, and as a value of a form.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

#include "regatta/base/core/result.h"
#include "regatta/base/http/static_files.h"
#include "regatta/platform/audit/audit_record.h"
#include "regatta/platform/login/internal/browser_request.h"
#include "regatta/platform/login/internal/id_token.h"
#include "regatta/platform/login/internal/oidc_provider.h"

namespace {

using namespace regatta;  // NOLINT(google-build-using-namespace): a program of its own

void check_cookie(std::string_view text) {
  const std::string_view value = login::find_cookie(text, login::kSessionCookie);
  REGATTA_CHECK(value.find(';') == std::string_view::npos);
  REGATTA_CHECK(value.empty() || text.find(value) != std::string_view::npos);
}

void check_site(std::string_view text) {
  http::Request request;
  request.headers = {{"Origin", std::string(text)}, {"Host", "head:7780"}};
  const bool is_own = login::site_of(request) == login::RequestSite::kOwn;
  REGATTA_CHECK(is_own == (text == "https://head:7780"));
}

void check_audit(std::string_view text) {
  const auto link = audit::parse_audit_line(text);
  // An accepted line has one form.
  if (link) REGATTA_CHECK(audit::audit_line(*link) == text);
  const audit::AuditLink made =
      audit::link_record({.number = 1, .object = audit::audit_text(text)}, audit::AuditHead{}.hash);
  const auto read = audit::parse_audit_line(audit::audit_line(made));
  REGATTA_CHECK(read && read->hash == made.hash);
  audit::AuditChain chain{audit::AuditHead{}};
  REGATTA_CHECK(chain.add(*read).has_value());
}

// No bytes are a token without the key.
void check_token(std::string_view text) {
  constexpr const char* kKeys = R"({"keys":[{"kty":"EC","crv":"P-256","kid":"c",)"
                                R"("x":"axfR8uEsQkf4vOblY6RA8ncDfYEt6zOg9KE5RdiYwpY",)"
                                R"("y":"T-NC4v4af5uO5-tKfA-eFivOM1drMV7Oy7ZAaDe_UfU"}]})";
  static const auto keys = login::parse_provider_keys(kKeys);
  REGATTA_CHECK(keys && keys->size() == 1);
  const login::TokenTerms terms{.issuer = "https://i", .client = "c", .nonce = "n"};
  REGATTA_CHECK(!login::verify_id_token(text, *keys, terms, 1'800'000'000));
  static_cast<void>(login::parse_provider_keys(text).has_value());
}

void check_form(std::string_view text) {
  for (const char letter : login::form_text(text))
    REGATTA_CHECK(letter > ' ' && letter != '&' && letter != '=' && letter != '+');
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  check_cookie(text);
  check_site(text);
  static_cast<void>(http::takes_encoding(text, "br"));
  check_audit(text);
  check_token(text);
  check_form(text);
  return 0;
}
