#include "regatta/platform/api/internal/identity_routes.h"

#include <optional>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "regatta/base/core/ids.h"
#include "regatta/base/core/text.h"
#include "regatta/platform/api/internal/json_object.h"
#include "regatta/platform/api/problem.h"
#include "regatta/platform/identity/secret.h"
#include "regatta/platform/sched/state_file.h"

namespace regatta::api {
namespace {

using controller::ControllerRuntime;

constexpr double kLifetimeMax = 366 * 86400.0;
constexpr Seconds kLifetimeDefault{30 * 86400.0};
constexpr Seconds kJoinLifetime{3600};
constexpr Seconds kLoginLifetime{900};
constexpr double kLoginLifetimeMax = 86400.0;
constexpr int kUsesMax = 100'000;
constexpr std::size_t kTokenNameMost = 253;
constexpr std::string_view kSecretPrefix = "rgt_";

constexpr std::size_t kPasswordLeast = 8;
constexpr std::size_t kPasswordMost = 1024;

Status check_password(std::string_view password) {
  if (password.size() >= kPasswordLeast && password.size() <= kPasswordMost) return {};
  return Error{Code::kInvalidInput,
               fmt::format("body: password: it has {} bytes; choose one of {} to {}",
                           password.size(), kPasswordLeast, kPasswordMost)};
}

std::string user_json(const identity::User& user) {
  JsonObject object;
  object.add("kind", "user");
  object.add("name", user.name);
  object.add_revision("rev", user.revision);
  object.add("role", at(identity::kAccessRoleNames, static_cast<int>(user.role)));
  object.add("disabled", user.is_disabled);
  object.add("password", !user.password_hash.empty());
  return object.take();
}

std::string token_json(const identity::AccessToken& token) {
  JsonObject object;
  object.add("kind", "token");
  object.add("id", token.id);
  object.add_revision("rev", token.revision);
  object.add("use", at(identity::kTokenUseNames, static_cast<int>(token.use)));
  object.add("user", token.user);
  object.add("name", token.name);
  object.add("created_ms", token.created_ms);
  object.add("expires_ms", token.expires_ms);
  if (token.uses_left > 0) object.add("uses_left", token.uses_left);
  return object.take();
}

void respond_list(ControllerRuntime& runtime, const ApiRequest& request, std::string items) {
  JsonObject page;
  page.add_revision("rev", runtime.tables().last_revision);
  page.add_raw("items", finished_list(std::move(items)));
  respond_json(runtime, request, page.take());
}

// Tokens of others are made by admins, for users that there are.
std::optional<http::Response> check_token_user(const ControllerRuntime& runtime,
                                               const Caller& caller, const std::string& user) {
  if (user == caller.user) return std::nullopt;
  if (caller.role < AccessRole::kAdmin)
    return problem(403, "NotAllowed", "tokens for other users are made by an admin; ask one");
  if (!runtime.tables().identities.users.contains(user))
    return problem({Code::kNotFound, fmt::format("user {}: there is none; make it with regatta "
                                                 "users --set",
                                                 printable(user, 60))});
  return std::nullopt;
}

}  // namespace

void list_users(ControllerRuntime& runtime, const ApiRequest& request) {
  std::string items;
  for (const auto& [name, user] : runtime.tables().identities.users)
    append_item(items, user_json(user));
  respond_list(runtime, request, std::move(items));
}

void store_user(ControllerRuntime& runtime, const ApiRequest& request, identity::User user) {
  const Status status = runtime.change(
      [&](auto& core, const control::Moment&) { return core.set_user(std::move(user)); });
  if (!status) return respond(runtime, request, problem(status.error()));
  const identity::User& made = runtime.tables().identities.users.at(request.parameters.front());
  respond_json(runtime, request, user_json(made), 200, made.revision);
}

void set_user(ControllerRuntime& runtime, const HashPassword& hash_password,
              const ApiRequest& request) {
  const auto document = request.body();
  if (!document) return refuse(request, document.error());
  const YamlMap root = document->root();
  root.allow({"role", "disabled", "password"});
  const std::string& name = request.parameters.front();
  const auto& users = runtime.tables().identities.users;
  const auto known = users.find(name);
  identity::User user = known == users.end() ? identity::User{} : known->second;
  user.name = name;
  user.role = root.choice("role", sched::choices_of<AccessRole>(identity::kAccessRoleNames),
                          std::optional(user.role));
  user.is_disabled = root.boolean_or("disabled", user.is_disabled);
  std::string password = root.text("password", "");
  if (const Status status = document->status(); !status) return refuse(request, status.error());
  if (password.empty()) return store_user(runtime, request, std::move(user));
  if (const Status status = check_password(password); !status)
    return refuse(request, status.error());
  if (!hash_password)
    return refuse(request, {Code::kUnsupported, "this controller has no logins by password"});
  const bool has_state = root.has("disabled");
  const bool has_role = root.has("role");
  hash_password(std::move(password), [&runtime, request, user = std::move(user), has_state,
                                      has_role](auto hash) mutable {
    if (!hash) return refuse(request, hash.error());
    // It may have changed meanwhile.
    const auto& known_now = runtime.tables().identities.users;
    if (const auto now = known_now.find(user.name); now != known_now.end()) {
      if (!has_role) user.role = now->second.role;
      if (!has_state) user.is_disabled = now->second.is_disabled;
    }
    user.password_hash = std::move(*hash);
    store_user(runtime, request, std::move(user));
  });
}

void remove_user(ControllerRuntime& runtime, const ApiRequest& request) {
  const std::string& name = request.parameters.front();
  if (name == request.caller.user)
    return refuse(request,
                  {Code::kConflict, "a user cannot remove itself; let another admin do it"});
  const Status status =
      runtime.change([&](auto& core, const control::Moment&) { return core.remove_user(name); });
  if (!status) return respond(runtime, request, problem(status.error()));
  respond_json(runtime, request, "{}");
}

void list_tokens(ControllerRuntime& runtime, const ApiRequest& request) {
  std::string items;
  for (const auto& [id, token] : runtime.tables().identities.tokens)
    if (token.user == request.caller.user || request.caller.role == AccessRole::kAdmin)
      append_item(items, token_json(token));
  respond_list(runtime, request, std::move(items));
}

void create_token(ControllerRuntime& runtime, const ApiRequest& request) {
  const auto document = request.body();
  if (!document) return refuse(request, document.error());
  const YamlMap root = document->root();
  root.allow({"name", "use", "lifetime", "uses", "user"});
  identity::AccessToken token;
  token.id = identity::random_id();
  token.name = root.text("name", "");
  const Choices<identity::TokenUse> uses = {{"api", identity::TokenUse::kApi},
                                            {"login", identity::TokenUse::kLogin},
                                            {"join", identity::TokenUse::kJoin}};
  token.use = root.choice("use", uses, std::optional(identity::TokenUse::kApi));
  const bool is_join = token.use == identity::TokenUse::kJoin;
  const bool is_login = token.use == identity::TokenUse::kLogin;
  const Seconds usual = is_join ? kJoinLifetime : is_login ? kLoginLifetime : kLifetimeDefault;
  const double longest = is_login ? kLoginLifetimeMax : kLifetimeMax;
  const Seconds lifetime =
      root.seconds_or("lifetime", usual, {.low = is_login ? 1.0 : 60, .high = longest});
  token.uses_left = root.integer_or("uses", 1, {1, kUsesMax});
  const std::string user = root.text("user", request.caller.user);
  if (const Status status = document->status(); !status) return refuse(request, status.error());
  if (is_login) token.uses_left = 1;
  if (token.name.size() > kTokenNameMost)
    return refuse(request, {Code::kInvalidInput,
                            fmt::format("name: it has {} bytes, more than {}; use a shorter one",
                                        token.name.size(), kTokenNameMost)});
  if (is_join && request.caller.role < AccessRole::kOperator)
    return request.exchange->respond(
        problem(403, "NotAllowed", "tokens for servers are made by an operator; ask one"));
  if (const auto refusal = check_token_user(runtime, request.caller, user))
    return request.exchange->respond(*refusal);
  if (!is_join) token.user = user;
  const std::string secret = identity::random_secret(is_join ? "" : kSecretPrefix);
  token.secret_hash = identity::secret_hash(secret);
  const std::string id = token.id;
  request.exchange->set_object(fmt::format("{} for {}", id, is_join ? "servers" : user));
  runtime.change([&](auto& core, const control::Moment& moment) {
    token.created_ms = moment.unix_ms;
    token.expires_ms = moment.unix_ms + static_cast<std::int64_t>(lifetime.value * 1000);
    core.add_token(std::move(token));
    return 0;
  });
  JsonObject object;
  object.add_raw("token", token_json(runtime.tables().identities.tokens.at(id)));
  object.add("secret", secret);
  respond_json(runtime, request, object.take(), 201);
}

void remove_token(ControllerRuntime& runtime, const ApiRequest& request) {
  const std::string& id = request.parameters.front();
  const auto& tokens = runtime.tables().identities.tokens;
  const auto found = tokens.find(id);
  // A token of another user looks like none.
  const bool is_hidden = found != tokens.end() && request.caller.role < AccessRole::kAdmin &&
                         found->second.user != request.caller.user;
  const Status status =
      is_hidden ? Status(Error{Code::kNotFound, fmt::format("token {}: there is none; list them "
                                                            "with regatta tokens",
                                                            printable(id, 60))})
                : runtime.change(
                      [&](auto& core, const control::Moment&) { return core.remove_token(id); });
  if (!status) return respond(runtime, request, problem(status.error()));
  respond_json(runtime, request, "{}");
}

}  // namespace regatta::api
