// Users and tokens of the controller.
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "regatta/base/core/text.h"
#include "regatta/platform/control/cluster_controller.h"
#include "regatta/platform/control/internal/attempts.h"

namespace regatta::control {

Status ClusterController::set_user(identity::User user) {
  REGATTA_TRY_DO(check_user(user));
  state_->changed_users.insert(user.name);
  state_->tables.identities.users[user.name] = std::move(user);
  return {};
}

Status ClusterController::remove_user(const std::string& name) {
  identity::IdentityTables& identities = state_->tables.identities;
  if (identities.users.erase(name) == 0)
    return Error{
        Code::kNotFound,
        fmt::format("user {}: there is none; list them with regatta users", printable(name, 60))};
  state_->changed_users.insert(name);
  std::vector<std::string> ids;
  for (const auto& [id, token] : identities.tokens)
    if (token.user == name) ids.push_back(id);
  for (const std::string& id : ids) {
    identities.remove_token(id);
    state_->changed_tokens.insert(id);
  }
  return {};
}

void ClusterController::add_token(identity::AccessToken token) {
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

Result<identity::AccessToken> ClusterController::use_token(std::string_view secret_hash,
                                                           identity::TokenUse use,
                                                           const Moment& moment) {
  identity::IdentityTables& identities = state_->tables.identities;
  const identity::AccessToken* found = identities.find(secret_hash, use, moment.unix_ms);
  if (found == nullptr || found->uses_left < 1)
    return Error{Code::kNotFound, "the token is not known, used up or expired; ask for a new one"};
  identity::AccessToken& token = identities.tokens.at(found->id);
  --token.uses_left;
  state_->changed_tokens.insert(token.id);
  return token;
}

}  // namespace regatta::control
