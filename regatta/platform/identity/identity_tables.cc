#include "regatta/platform/identity/identity_tables.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "regatta/platform/identity/identity_records.pb.h"

namespace regatta::identity {
namespace {

constexpr std::string_view kUsers = "user/";
constexpr std::string_view kTokens = "token/";
constexpr std::size_t kNameMax = 64;

Error damaged(std::string_view key) {
  return {Code::kInvalidInput,
          fmt::format("store: record {} cannot be read; restore a backup", printable(key, 80))};
}

bool is_name_letter(char letter) {
  return (letter >= 'a' && letter <= 'z') || (letter >= 'A' && letter <= 'Z') ||
         (letter >= '0' && letter <= '9') || letter == '.' || letter == '_' || letter == '-';
}

}  // namespace

void IdentityTables::add(AccessToken token) {
  token_ids[token.secret_hash] = token.id;
  tokens[token.id] = std::move(token);
}

void IdentityTables::remove_token(const std::string& id) {
  const auto found = tokens.find(id);
  if (found == tokens.end()) return;
  token_ids.erase(found->second.secret_hash);
  tokens.erase(found);
}

const AccessToken* IdentityTables::find(std::string_view secret_hash, TokenUse use,
                                        std::int64_t unix_ms) const {
  const auto id = token_ids.find(std::string(secret_hash));
  if (id == token_ids.end()) return nullptr;
  const AccessToken& token = tokens.at(id->second);
  if (token.use != use || (token.expires_ms != 0 && token.expires_ms <= unix_ms)) return nullptr;
  if (use == TokenUse::kJoin || use == TokenUse::kLogin) {
    if (token.uses_left < 1) return nullptr;
    if (use == TokenUse::kJoin) return &token;
  }
  const auto user = users.find(token.user);
  return user == users.end() || user->second.is_disabled ? nullptr : &token;
}

Status check_user(const User& user) {
  if (user.name.empty() || user.name.size() > kNameMax ||
      !std::all_of(user.name.begin(), user.name.end(), is_name_letter))
    return Error{Code::kInvalidInput,
                 fmt::format("user {}: the name is not 1 to {} letters, digits, '.', '_' or '-'; "
                             "choose such a one",
                             printable(user.name, 80), kNameMax)};
  return {};
}

Result<bool> load_identity(const store::Record& stored, IdentityTables& tables) {
  const int size = static_cast<int>(stored.value.size());
  if (stored.key.starts_with(kUsers)) {
    proto::UserRecord record;
    if (!record.ParseFromArray(stored.value.data(), size)) return damaged(stored.key);
    User& user = tables.users[record.name()];
    user.name = record.name();
    user.role = static_cast<AccessRole>(record.role());
    user.password_hash = record.password_hash();
    user.is_disabled = record.is_disabled();
    user.subject = record.subject();
    user.revision = stored.revision;
    return true;
  }
  if (!stored.key.starts_with(kTokens)) return false;
  proto::TokenRecord record;
  if (!record.ParseFromArray(stored.value.data(), size)) return damaged(stored.key);
  tables.add({.id = record.id(),
              .use = static_cast<TokenUse>(record.use()),
              .user = record.user(),
              .name = record.name(),
              .secret_hash = record.secret_hash(),
              .created_ms = record.created_ms(),
              .expires_ms = record.expires_ms(),
              .uses_left = record.uses_left(),
              .revision = stored.revision});
  return true;
}

store::Change user_change(const User& user) {
  proto::UserRecord record;
  record.set_name(user.name);
  record.set_role(static_cast<int>(user.role));
  record.set_password_hash(user.password_hash);
  record.set_is_disabled(user.is_disabled);
  record.set_subject(user.subject);
  return {fmt::format("{}{}", kUsers, user.name), user.revision, record.SerializeAsString()};
}

store::Change token_change(const AccessToken& token) {
  proto::TokenRecord record;
  record.set_id(token.id);
  record.set_use(static_cast<int>(token.use));
  record.set_user(token.user);
  record.set_name(token.name);
  record.set_secret_hash(token.secret_hash);
  record.set_created_ms(token.created_ms);
  record.set_expires_ms(token.expires_ms);
  record.set_uses_left(token.uses_left);
  return {fmt::format("{}{}", kTokens, token.id), token.revision, record.SerializeAsString()};
}

}  // namespace regatta::identity
