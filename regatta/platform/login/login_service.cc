#include "regatta/platform/login/login_service.h"

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "regatta/base/core/text.h"
#include "regatta/base/core/yaml_map.h"
#include "regatta/base/os/clock.h"
#include "regatta/platform/api/object_json.h"
#include "regatta/platform/api/problem.h"
#include "regatta/platform/api/rate_limits.h"
#include "regatta/platform/identity/secret.h"
#include "regatta/platform/login/internal/browser_request.h"
#include "regatta/platform/login/internal/login_limiter.h"
#include "regatta/platform/login/internal/oidc_login.h"
#include "regatta/platform/login/internal/password_pool.h"

namespace regatta::login {
namespace {

using SharedExchange = std::shared_ptr<api::AuditedExchange>;

constexpr std::string_view kBearer = "Bearer ";
constexpr int kPasswordThreads = 2;
constexpr YamlBounds kLoginBounds{.bytes = 8192, .depth = 2, .nodes = 16};
// Many people may sit behind one address.
constexpr LoginLimits kAddressLimits{.free = 20, .pause = Seconds{1}, .pause_max = Seconds{60}};

struct LoginRequest {
  std::string user;
  std::string password;
  std::string once;
};

Result<LoginRequest> login_request_of(const http::Request& request) {
  REGATTA_TRY(tree, parse_json(request.body, "body", kLoginBounds));
  REGATTA_TRY(document, YamlDocument::read(std::move(tree), "body"));
  document.root().allow({"user", "password", "once"});
  LoginRequest wanted;
  wanted.user = document.root().text("user", "");
  wanted.password = document.root().text("password", "");
  wanted.once = document.root().text("once", "");
  REGATTA_TRY_DO(document.status());
  if (wanted.once.empty() == (wanted.user.empty() || wanted.password.empty()))
    return Error{Code::kInvalidInput,
                 "body: it has neither user and password nor once; give one of both"};
  return wanted;
}

http::Response foreign_page() {
  return api::problem(403, "ForeignPage",
                      "a page of another origin has sent this; open the controller's own page");
}

}  // namespace

struct LoginService::Impl {
  Impl(http::EventLoop& event_loop, controller::ControllerRuntime& its_runtime, LoginOptions given)
      : runtime(its_runtime), options(std::move(given)), pool(event_loop, kPasswordThreads) {
    if (options.oidc) oidc = std::make_unique<OidcLogin>(event_loop, *options.oidc);
  }

  const identity::IdentityTables& identities() const { return runtime.tables().identities; }

  // The session of the request's cookie; null: none.
  const identity::AccessToken* session_of(const http::Request& request) const {
    const std::string_view secret = find_cookie(request.header("Cookie"), kSessionCookie);
    if (secret.empty()) return nullptr;
    return identities().find(identity::secret_hash(secret), identity::TokenUse::kSession,
                             runtime.moment().unix_ms);
  }

  api::Caller caller_of(const identity::AccessToken& token) const {
    return {.user = token.user,
            .role = identities().users.at(token.user).role,
            .token = token.id,
            .expires_ms = token.expires_ms};
  }

  void respond(const SharedExchange& exchange, http::Response response) {
    exchange->note(response.status);
    runtime.when_durable(
        [exchange, response = std::move(response)] { exchange->respond(response); });
  }

  // Whether it was refused: the user or the address has to wait.
  bool refuse_if_often(const SharedExchange& exchange, const std::string& user,
                       const std::string& address) {
    const Seconds now = os::monotonic_now();
    const Seconds wait = std::max(by_user.wait(user, now), by_address.wait(address, now));
    if (wait.value <= 0) return false;
    exchange->leave_out();  // the failures before are noted
    exchange->respond(api::too_many("TooManyLogins", "too many logins have failed", wait));
    return true;
  }

  void refuse_login(const SharedExchange& exchange) {
    exchange->respond(api::problem(
        401, "NotAuthenticated",
        "user, password or token is wrong, or the token was used; try again, or ask for a new one "
        "with regatta login --url"));
  }

  void end_oldest_sessions(const std::string& user) {
    std::vector<std::pair<std::int64_t, std::string>> sessions;
    for (const auto& [id, token] : identities().tokens)
      if (token.use == identity::TokenUse::kSession && token.user == user)
        sessions.emplace_back(token.created_ms, id);
    if (sessions.size() < options.sessions_max) return;
    std::sort(sessions.begin(), sessions.end());
    sessions.resize(sessions.size() - options.sessions_max + 1);
    runtime.change([&](auto& core, const control::Moment&) {
      for (const auto& [created, id] : sessions)
        static_cast<void>(core.remove_token(id).has_value());
      return 0;
    });
  }

  // `target`: a browser that comes from elsewhere is sent on to it; empty: it gets the session.
  void begin_session(const SharedExchange& exchange, const std::string& user,
                     const std::string& target = "") {
    exchange->set_user(user);
    end_session(exchange->request());
    end_oldest_sessions(user);
    const std::string secret = identity::random_secret("rgs_");
    identity::AccessToken token{.id = identity::random_id(),
                                .use = identity::TokenUse::kSession,
                                .user = user,
                                .name = exchange->request().remote_address,
                                .secret_hash = identity::secret_hash(secret)};
    const std::string id = token.id;
    runtime.change([&](auto& core, const control::Moment& moment) {
      token.created_ms = moment.unix_ms;
      token.expires_ms =
          moment.unix_ms + static_cast<std::int64_t>(options.session_lifetime.value * 1000);
      core.add_token(std::move(token));
      return 0;
    });
    http::Response response;
    response.body = api::session_json(caller_of(identities().tokens.at(id)));
    response.headers.emplace_back("Set-Cookie", session_cookie(secret, options.session_lifetime));
    response.headers.emplace_back("Cache-Control", "no-store");
    if (!target.empty()) {
      response.status = 302;
      response.headers.emplace_back("Location", target);
    }
    respond(exchange, std::move(response));
  }

  void let_in(const SharedExchange& exchange, const OidcUser& found) {
    exchange->set_object(found.name);
    const auto known = identities().users.find(found.name);
    const bool is_new = known == identities().users.end();
    if (!is_new && (known->second.is_disabled || known->second.subject != found.subject))
      return exchange->respond(api::problem(
          403, "NotAllowed",
          fmt::format("user {}: the name is disabled, or belongs to another user; ask an admin",
                      printable(found.name, 60))));
    identity::User user = is_new ? identity::User{} : known->second;
    user.name = found.name;
    user.subject = found.subject;
    user.role = found.role;
    const Status made = runtime.change(
        [&](auto& core, const control::Moment&) { return core.set_user(std::move(user)); });
    if (!made) return exchange->respond(api::problem(made.error()));
    begin_session(exchange, found.name, "/");
  }

  void end_session(const http::Request& request) {
    const identity::AccessToken* session = session_of(request);
    if (session == nullptr) return;
    const std::string id = session->id;
    static_cast<void>(
        runtime.change([&](auto& core, const control::Moment&) { return core.remove_token(id); })
            .has_value());
  }

  void log_in_once(const SharedExchange& exchange, const std::string& once,
                   const std::string& address) {
    const auto used = runtime.change([&](auto& core, const control::Moment& moment) {
      return core.use_token(identity::secret_hash(once), identity::TokenUse::kLogin, moment);
    });
    if (!used) return refuse_login(exchange);
    by_address.succeed(address);
    begin_session(exchange, used->user);
  }

  void log_in_by_password(const SharedExchange& exchange, const LoginRequest& wanted,
                          const std::string& address) {
    const auto found = identities().users.find(wanted.user);
    const std::string hash =
        found == identities().users.end() ? std::string() : found->second.password_hash;
    const Status begun = pool.verify(
        hash, wanted.password, [this, exchange, user = wanted.user, address, hash](bool is_right) {
          // Things may have changed while the password was checked.
          const auto now = identities().users.find(user);
          if (!is_right || now == identities().users.end() || now->second.is_disabled ||
              now->second.password_hash != hash)
            return refuse_login(exchange);
          by_user.succeed(user);
          by_address.succeed(address);
          begin_session(exchange, user);
        });
    if (!begun) exchange->respond(api::problem(begun.error()));
  }

  controller::ControllerRuntime& runtime;
  LoginOptions options;
  LoginLimiter by_user{LoginLimits{}};
  LoginLimiter by_address{kAddressLimits};
  PasswordPool pool;
  std::unique_ptr<OidcLogin> oidc;
};

LoginService::LoginService(http::EventLoop& loop, controller::ControllerRuntime& runtime,
                           LoginOptions options)
    : impl_(std::make_unique<Impl>(loop, runtime, std::move(options))) {}

LoginService::~LoginService() = default;

Result<api::Caller> LoginService::authenticate(const http::Request& request) const {
  const std::string_view header = request.header("Authorization");
  if (header.starts_with(kBearer)) {
    const identity::AccessToken* token =
        impl_->identities().find(identity::secret_hash(header.substr(kBearer.size())),
                                 identity::TokenUse::kApi, impl_->runtime.moment().unix_ms);
    if (token == nullptr)
      return Error{Code::kNotFound, "the token is not known or has expired; make a new one"};
    return impl_->caller_of(*token);
  }
  const identity::AccessToken* session = impl_->session_of(request);
  if (session == nullptr)
    return Error{Code::kNotFound,
                 "the request has no token and no session; log in, or send Authorization: Bearer "
                 "TOKEN"};
  // A browser sends the cookie also for pages of other ports of this host. A change
  // has to prove that it comes from here.
  const RequestSite site = site_of(request);
  const bool reads = request.method == "GET" || request.method == "HEAD";
  if (site == RequestSite::kForeign || (site == RequestSite::kUnknown && !reads))
    return Error{Code::kConflict,
                 "a page of another origin has sent this; open the controller's own page"};
  return impl_->caller_of(*session);
}

void LoginService::log_in(std::shared_ptr<api::AuditedExchange> exchange) {
  const http::Request& request = exchange->request();
  // Requests that begin no login are not noted: anybody could fill the disk by them.
  if (site_of(request) == RequestSite::kForeign) {
    exchange->leave_out();
    return exchange->respond(foreign_page());
  }
  const auto wanted = login_request_of(request);
  if (!wanted) {
    exchange->leave_out();
    return exchange->respond(api::problem(wanted.error()));
  }
  const std::string address = api::network_of(request.remote_address);
  if (impl_->refuse_if_often(exchange, wanted->user, address)) return;
  const Seconds now = os::monotonic_now();
  exchange->set_object(wanted->once.empty() ? wanted->user : "once");
  impl_->by_address.count_try(address, now);
  if (!wanted->once.empty()) return impl_->log_in_once(exchange, wanted->once, address);
  impl_->by_user.count_try(wanted->user, now);
  impl_->log_in_by_password(exchange, *wanted, address);
}

void LoginService::log_out(const std::shared_ptr<api::AuditedExchange>& exchange) {
  if (site_of(exchange->request()) == RequestSite::kForeign) {
    exchange->leave_out();
    return exchange->respond(foreign_page());
  }
  const identity::AccessToken* session = impl_->session_of(exchange->request());
  if (session == nullptr) exchange->leave_out();
  if (session != nullptr) exchange->set_user(session->user);
  impl_->end_session(exchange->request());
  http::Response response;
  response.body = "{}";
  response.headers.emplace_back("Set-Cookie", session_cookie("", Seconds{0}));
  impl_->respond(exchange, std::move(response));
}

void LoginService::begin_oidc(const SharedExchange& exchange) {
  if (impl_->oidc != nullptr) return impl_->oidc->begin(exchange);
  exchange->respond(
      api::problem({Code::kUnsupported, "this controller has no OpenID provider; see --oidc"}));
}

void LoginService::finish_oidc(const SharedExchange& exchange) {
  if (impl_->oidc == nullptr) return begin_oidc(exchange);
  impl_->oidc->finish(exchange,
                      [this, exchange](const OidcUser& user) { impl_->let_in(exchange, user); });
}

void LoginService::hash_password(std::string password,
                                 std::function<void(Result<std::string>)> done) {
  const Status begun = impl_->pool.hash(std::move(password), done);
  if (!begun) done(begun.error());
}

}  // namespace regatta::login
