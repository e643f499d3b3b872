#include "regatta/platform/login/internal/oidc_login.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "regatta/base/core/text.h"
#include "regatta/base/os/clock.h"
#include "regatta/platform/api/problem.h"
#include "regatta/platform/identity/secret.h"
#include "regatta/platform/login/internal/browser_request.h"
#include "regatta/platform/login/internal/oidc_provider.h"
#include "regatta/platform/login/internal/password_pool.h"

namespace regatta::login {
namespace {

// Browsers send it along when the provider sends them back, which a cookie of SameSite=Strict would
// not be.
constexpr std::string_view kAttemptCookie = "__Host-regatta-login";
constexpr Seconds kAttemptLimit{600};
constexpr std::size_t kAttemptsMax = 10'000;

std::string attempt_cookie(std::string_view secret, int lifetime_s) {
  return fmt::format("{}={}; Path=/; Secure; HttpOnly; SameSite=Lax; Max-Age={}", kAttemptCookie,
                     secret, lifetime_s);
}

bool has_value(const nlohmann::json& claim, const std::string& value) {
  if (claim.is_string()) return claim == value;
  return claim.is_array() && std::find(claim.begin(), claim.end(), value) != claim.end();
}

// The user of verified claims; kConflict where it may not get in.
Result<OidcUser> user_of(const nlohmann::json& claims, const OidcSettings& settings) {
  const auto name = claims.find(settings.user_claim);
  if (name == claims.end() || !name->is_string())
    return Error{Code::kConflict, fmt::format("the provider's token has no claim {}; change "
                                              "user_claim or the provider",
                                              settings.user_claim)};
  OidcUser user{.name = name->get<std::string>(),
                .subject = settings.issuer + " " + claims.at("sub").get<std::string>()};
  std::optional<identity::AccessRole> best;
  const nlohmann::json groups = claims.value(settings.roles_claim, nlohmann::json());
  for (const auto& [value, role] : settings.roles)
    if (has_value(groups, value)) best = std::max(best.value_or(role), role);
  if (!best)
    return Error{Code::kConflict,
                 fmt::format("user {}: the provider gives no role here; ask an admin",
                             printable(user.name, 60))};
  user.role = *best;
  return user;
}

}  // namespace

struct OidcLogin::Impl {
  Impl(http::EventLoop& loop, OidcSettings given)
      : settings(std::move(given)), provider(settings), pool(loop, {.refusal = kTooManyLogins}) {}

  void forget_old(Seconds now) {
    std::erase_if(attempts, [&](const auto& entry) { return entry.second.until <= now; });
  }

  OidcSettings settings;
  std::map<std::string, OidcAttempt> attempts;  // by hash of their state
  OidcProvider provider;                        // the thread's
  http::WorkPool pool;                          // the provider is asked beside the loop
};

OidcLogin::OidcLogin(http::EventLoop& loop, OidcSettings settings)
    : impl_(std::make_unique<Impl>(loop, std::move(settings))) {}

OidcLogin::~OidcLogin() = default;

void OidcLogin::begin(const std::shared_ptr<api::AuditedExchange>& exchange) {
  const Seconds now = os::monotonic_now();
  impl_->forget_old(now);
  if (impl_->attempts.size() >= kAttemptsMax)
    return exchange->respond(
        api::too_many("TooManyLogins", "too many logins are under way", Seconds{60}));
  const std::string state = identity::random_secret("");
  const std::string binding = identity::random_secret("");
  const OidcAttempt attempt{.nonce = identity::random_secret(""),
                            .verifier = identity::random_secret(""),
                            .binding = identity::secret_hash(binding),
                            .until = now + kAttemptLimit};
  impl_->attempts[identity::secret_hash(state)] = attempt;
  const Status begun = impl_->pool.run([impl = impl_.get(), exchange, state, binding, attempt] {
    return std::function<void()>(
        [exchange, binding, url = impl->provider.authorization_url(state, attempt)] {
          if (!url) return exchange->respond(api::problem(503, "Unavailable", url.error().message));
          http::Response response;
          response.status = 302;
          response.headers = {
              {"Location", *url},
              {"Set-Cookie", attempt_cookie(binding, static_cast<int>(kAttemptLimit.value))},
              {"Cache-Control", "no-store"}};
          exchange->respond(std::move(response));
        });
  });
  if (begun) return;
  impl_->attempts.erase(identity::secret_hash(state));
  exchange->respond(api::problem(begun.error()));
}

void OidcLogin::finish(const std::shared_ptr<api::AuditedExchange>& exchange,
                       std::function<void(const OidcUser&)> done) {
  const http::Request& request = exchange->request();
  const auto refuse = [&exchange](int status, std::string_view reason, std::string_view message) {
    exchange->respond(api::problem(status, reason, message));
  };
  impl_->forget_old(os::monotonic_now());
  const auto found = impl_->attempts.find(identity::secret_hash(request.query_value("state")));
  const std::string_view cookie = find_cookie(request.header("Cookie"), kAttemptCookie);
  if (found == impl_->attempts.end() || cookie.empty() ||
      identity::secret_hash(cookie) != found->second.binding) {
    exchange->leave_out();
    return refuse(401, "NotAuthenticated",
                  "this browser has begun no such login, or it is over; begin it again");
  }
  const OidcAttempt attempt = found->second;
  impl_->attempts.erase(found);
  const std::string_view issuer = request.query_value("iss");
  if (!issuer.empty() && issuer != impl_->settings.issuer)
    return refuse(401, "NotAuthenticated", "another provider answers; begin the login again");
  if (const std::string_view error = request.query_value("error"); !error.empty())
    return refuse(403, "NotAllowed",
                  fmt::format("the provider refuses the login: {}", printable(error, 80)));
  const std::string code(request.query_value("code"));
  const Status begun =
      impl_->pool.run([impl = impl_.get(), exchange, code, attempt, done = std::move(done)] {
        auto claims = impl->provider.redeem(code, attempt);
        return std::function<void()>([exchange, impl, done, claims = std::move(claims)] {
          if (!claims) {
            const bool is_away = claims.error().code != Code::kInvalidInput &&
                                 claims.error().code != Code::kNotFound;
            return exchange->respond(
                is_away ? api::problem(503, "Unavailable", claims.error().message)
                        : api::problem(401, "NotAuthenticated", claims.error().message));
          }
          const auto user = user_of(*claims, impl->settings);
          if (!user)
            return exchange->respond(api::problem(403, "NotAllowed", user.error().message));
          done(*user);
        });
      });
  if (!begun) exchange->respond(api::problem(begun.error()));
}

}  // namespace regatta::login
