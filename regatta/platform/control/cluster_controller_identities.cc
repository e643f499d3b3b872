// Users and tokens of the controller.
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "regatta/base/core/text.h"
#include "regatta/platform/control/cluster_controller.h"
#include "regatta/platform/control/internal/attempts.h"

namespace regatta::control {

namespace {

bool may_administrate(const identity::User& user) {
  return user.role == identity::AccessRole::kAdmin && !user.is_disabled;
}

// Nobody could make an admin again.
Status check_last_admin(const identity::IdentityTables& identities, const identity::User& user) {
  if (may_administrate(user)) return {};
  bool was_admin = false;
  for (const auto& [name, other] : identities.users) {
    if (!may_administrate(other)) continue;
    if (name != user.name) return {};
    was_admin = true;
  }
  if (!was_admin) return {};
  return Error{Code::kConflict,
               fmt::format("user {}: it is the last admin that can log in; make another one first",
                           user.name)};
}

}  // namespace

Status ClusterController::set_user(identity::User user) {
  REGATTA_TRY_DO(check_user(user));
  REGATTA_TRY_DO(check_last_admin(state_->tables.identities, user));
  state_->changed_users.insert(user.name);
  identity::User& stored = state_->tables.identities.users[user.name];
  // Those who knew the old password have no session any more.
  const bool ends_sessions = user.is_disabled || user.password_hash != stored.password_hash;
  stored = std::move(user);
  if (ends_sessions)
    remove_tokens([&](const identity::AccessToken& token) {
      return token.user == stored.name && token.use == identity::TokenUse::kSession;
    });
  return {};
}

Status ClusterController::remove_user(const std::string& name) {
  identity::IdentityTables& identities = state_->tables.identities;
  if (identities.users.erase(name) == 0)
    return Error{
        Code::kNotFound,
        fmt::format("user {}: there is none; list them with regatta users", printable(name, 60))};
  state_->changed_users.insert(name);
  remove_tokens([&](const identity::AccessToken& token) { return token.user == name; });
  return {};
}

template <typename Which>
void ClusterController::remove_tokens(Which which) {
  identity::IdentityTables& identities = state_->tables.identities;
  std::vector<std::string> ids;
  for (const auto& [id, token] : identities.tokens)
    if (which(token)) ids.push_back(id);
  for (const std::string& id : ids) {
    identities.remove_token(id);
    state_->changed_tokens.insert(id);
  }
}

void ClusterController::add_token(identity::AccessToken token) {
  // Logins make so many that they do not wait for anybody to remove them.
  remove_tokens([&](const identity::AccessToken& old) {
    const bool is_short = old.use != identity::TokenUse::kApi;
    return is_short && old.expires_ms != 0 && old.expires_ms <= token.created_ms;
  });
  state_->changed_tokens.insert(token.id);
  state_->tables.identities.add(std::move(token));
}

Status ClusterController::remove_token(const std::string& id) {
  identity::IdentityTables& identities = state_->tables.identities;
  if (!identities.tokens.contains(id))
    return Error{Code::kNotFound, fmt::format("token {}: there is none; list them with regatta "
                                              "tokens",
                                              printable(id, 60))};
  identities.remove_token(id);
  state_->changed_tokens.insert(id);
  return {};
}

void ClusterController::mark_audit(std::int64_t number, std::string hash) {
  state_->tables.audit.number = number;
  state_->tables.audit.hash = std::move(hash);
  state_->has_new_audit = true;
}

Result<identity::AccessToken> ClusterController::use_token(std::string_view secret_hash,
                                                           identity::TokenUse use,
                                                           const Moment& moment) {
  identity::IdentityTables& identities = state_->tables.identities;
  const identity::AccessToken* found = identities.find(secret_hash, use, moment.unix_ms);
  if (found == nullptr || found->uses_left < 1)
    return Error{Code::kNotFound, "the token is not known, used up or expired; ask for a new one"};
  const std::string id = found->id;
  state_->changed_tokens.insert(id);
  --identities.tokens.at(id).uses_left;
  const identity::AccessToken used = identities.tokens.at(id);
  if (use == identity::TokenUse::kLogin && used.uses_left < 1) identities.remove_token(id);
  return used;
}

}  // namespace regatta::control
