// identity/identity_tables.h: users with their roles, and the tokens by which they, and servers
// that join, are known. Pure: secrets are made by secret.h, and only their hashes are here.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

#include "regatta/base/core/result.h"
#include "regatta/base/core/text.h"
#include "regatta/platform/store/store.h"

namespace regatta::identity {

// Each role may do what those before it may.
enum class AccessRole {
  kViewer,       // reads
  kUser,         // and submits, and changes jobs of its own
  kTenantAdmin,  // and changes the jobs of its queues
  kOperator,     // and nodes, queues, all jobs
  kAdmin         // and users, tokens, backups
};
inline constexpr EnumNames<5> kAccessRoleNames = {"viewer", "user", "tenant_admin", "operator",
                                                  "admin"};

struct User {
  std::string name;  // 1 to 64 letters, digits, . _ -
  AccessRole role = AccessRole::kUser;
  std::string password_hash;  // of argon2id; empty: no login by password
  bool is_disabled = false;
  std::string subject = {};  // at an OpenID provider; empty: made here
  store::Revision revision = 0;
};

enum class TokenUse {
  kApi,      // in the header Authorization
  kSession,  // in the cookie of a browser
  kLogin,    // exchanged once for a session
  kJoin      // by a server that joins
};
inline constexpr EnumNames<4> kTokenUseNames = {"api", "session", "login", "join"};

struct AccessToken {
  std::string id;  // 16 hex digits; is no secret
  TokenUse use = TokenUse::kApi;
  std::string user;         // empty for kJoin
  std::string name;         // what its owner calls it
  std::string secret_hash;  // SHA-256 in hex
  std::int64_t created_ms = 0;
  std::int64_t expires_ms = 0;  // Unix time; 0: never
  int uses_left = 0;            // of kLogin and kJoin
  store::Revision revision = 0;
};

struct IdentityTables {
  std::map<std::string, User> users;
  std::map<std::string, AccessToken> tokens;               // by id
  std::unordered_map<std::string, std::string> token_ids;  // by secret_hash

  void add(AccessToken token);
  void remove_token(const std::string& id);
  // The token of a secret with this hash that serves `use` at this time; null when there is none,
  // it is used up, or its user is gone or disabled.
  const AccessToken* find(std::string_view secret_hash, TokenUse use, std::int64_t unix_ms) const;
};

// kInvalidInput with the remedy.
Status check_user(const User& user);

// Records `user/NAME` and `token/ID`. False: the key is of another kind.
Result<bool> load_identity(const store::Record& record, IdentityTables& tables);
store::Change user_change(const User& user);
store::Change token_change(const AccessToken& token);

}  // namespace regatta::identity
