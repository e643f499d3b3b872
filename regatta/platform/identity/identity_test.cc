#include <gmock/gmock.h>

#include "regatta/platform/identity/identity_tables.h"
#include "regatta/platform/identity/secret.h"

namespace regatta::identity {
namespace {

AccessToken token(const std::string& secret, TokenUse use) {
  return {.id = random_id(),
          .use = use,
          .user = "ada",
          .secret_hash = secret_hash(secret),
          .expires_ms = 1000,
          .uses_left = 1};
}

TEST(Identity, KnowsATokenByItsSecretUntilItExpires) {
  IdentityTables tables;
  tables.users["ada"] = {.name = "ada", .role = AccessRole::kUser};
  const std::string secret = random_secret("rgt_");
  tables.add(token(secret, TokenUse::kApi));
  ASSERT_NE(tables.find(secret_hash(secret), TokenUse::kApi, 999), nullptr);
  EXPECT_EQ(tables.find(secret_hash(secret), TokenUse::kApi, 1000), nullptr);
  EXPECT_EQ(tables.find(secret_hash(secret), TokenUse::kSession, 0), nullptr);
  EXPECT_EQ(tables.find(secret_hash(secret + "x"), TokenUse::kApi, 0), nullptr);
  tables.users["ada"].is_disabled = true;
  EXPECT_EQ(tables.find(secret_hash(secret), TokenUse::kApi, 0), nullptr);
}

TEST(Identity, TakesATokenOfJoiningOnlySoOften) {
  IdentityTables tables;
  AccessToken join = token("secret", TokenUse::kJoin);
  join.uses_left = 0;
  tables.add(join);
  EXPECT_EQ(tables.find(secret_hash("secret"), TokenUse::kJoin, 0), nullptr);
  tables.remove_token(join.id);
  join.uses_left = 1;
  tables.add(join);
  EXPECT_NE(tables.find(secret_hash("secret"), TokenUse::kJoin, 0), nullptr);
}

TEST(Identity, ReadsTheRecordsThatItWrites) {
  const User user{
      .name = "ada", .role = AccessRole::kOperator, .password_hash = "h", .revision = 4};
  const AccessToken api = token("secret", TokenUse::kApi);
  IdentityTables tables;
  for (const store::Change& change : {user_change(user), token_change(api)})
    EXPECT_TRUE(load_identity({change.key, change.revision, *change.value}, tables).value());
  EXPECT_EQ(tables.users.at("ada").role, AccessRole::kOperator);
  EXPECT_EQ(token_change(tables.tokens.at(api.id)).value, token_change(api).value);
  EXPECT_FALSE(load_identity({"job/1", 1, ""}, tables).value());
  EXPECT_FALSE(load_identity({"user/x", 1, "\xff"}, tables));
}

TEST(Identity, HashesPasswordsByArgon2) {
  const auto hash = hash_password("correct horse");
  ASSERT_TRUE(hash);
  EXPECT_THAT(*hash, testing::StartsWith("$argon2id$v=19$m=19456,t=2,p=1$"));
  EXPECT_TRUE(verify_password(*hash, "correct horse"));
  EXPECT_FALSE(verify_password(*hash, "correct horsf"));
  EXPECT_FALSE(verify_password("", ""));
}

TEST(Identity, HashesAsTheStandardDoes) {
  EXPECT_EQ(secret_hash("abc"),  // FIPS 180-2, appendix B.1
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

TEST(Identity, RefusesNamesThatAreNoNames) {
  EXPECT_TRUE(check_user({.name = "a.b-c_9"}));
  for (const char* name : {"", "a b", "a/b", "\n"})
    EXPECT_FALSE(check_user({.name = name})) << name;
}

}  // namespace
}  // namespace regatta::identity
