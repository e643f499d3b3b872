#include "regatta/platform/node_agent/internal/node_identity.h"

#include <gmock/gmock.h>

#include "regatta/base/os/file.h"
#include "regatta/platform/node_agent/internal/controller_link.h"
#include "regatta/platform/node_agent/internal/test_web_controller.h"

namespace regatta::node_agent {
namespace {

using testing::HasSubstr;

TEST(JoinToken, HasAHashAndASecret) {
  const std::string hash(64, 'a');
  const auto token = parse_join_token("rg1." + hash + ".id.secret");
  ASSERT_TRUE(token);
  EXPECT_EQ(token->authority_hash, hash);
  for (const std::string& wrong : {std::string("rg1.abc.id.secret"), "rg2." + hash + ".id.secret",
                                   "rg1." + hash + ".id", "rg1." + hash + ".id.", std::string()})
    EXPECT_FALSE(parse_join_token(wrong)) << wrong;
}

TEST(NodeIdentity, ComesForATokenOfTheControllersAuthorityAlone) {
  TestWebController controller;
  const auto token = parse_join_token(controller.token());
  ASSERT_TRUE(token);
  const auto enrolled = enroll(controller.url(), *token, "gpu-1");
  ASSERT_TRUE(enrolled) << enrolled.error().message;
  EXPECT_EQ(controller.enrolled(), 1);

  // Another authority: the token does not leave this process.
  const auto foreign = parse_join_token("rg1." + std::string(64, '0') + ".id.secret");
  const auto refused = enroll(controller.url(), *foreign, "gpu-1");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::kInvalidInput);
  EXPECT_THAT(refused.error().message, HasSubstr("no certificate of the authority"));
  EXPECT_EQ(controller.enrolled(), 1);

  const auto wrong = parse_join_token(controller.token() + "x");
  EXPECT_THAT(enroll(controller.url(), *wrong, "gpu-1").error().message, HasSubstr("401"));
}

TEST(NodeIdentity, IsKeptInItsFolderAndRenewedAtHalfLife) {
  TestWebController controller;
  const auto folder = os::TempFolder::create();
  ASSERT_TRUE(folder);
  EXPECT_EQ(load_identity(folder->path()).error().code, Code::kNotFound);
  const auto enrolled = enroll(controller.url(), *parse_join_token(controller.token()), "gpu-1");
  ASSERT_TRUE(enrolled);
  ASSERT_TRUE(save_identity(folder->path(), *enrolled));
  const auto loaded = load_identity(folder->path());
  ASSERT_TRUE(loaded);
  EXPECT_EQ(loaded->own.private_key, enrolled->own.private_key);
  EXPECT_EQ(loaded->own.certificate, enrolled->own.certificate);
  EXPECT_EQ(loaded->authority, enrolled->authority);

  const std::int64_t now = TestWebController::now();
  IdentityRenewal renewal(folder->path(), "gpu-1", *loaded, now);
  EXPECT_FALSE(renewal.due_request(now + 43000));
  EXPECT_TRUE(renewal.due_request(now + 43300));
  EXPECT_FALSE(renewal.due_request(now + 43310));  // not again within a minute
  // The old certificate does not fit the new key.
  EXPECT_FALSE(renewal.renewed(loaded->own.certificate, now + 43311));
  EXPECT_EQ(load_identity(folder->path())->own.private_key, loaded->own.private_key);
}

TEST(ReconnectPause, GrowsToItsLimitAndIsDrawnFromItsUpperHalf) {
  ReconnectPause pause(1);
  double longest = ReconnectPause::kFirst;
  for (int i = 0; i < 12; ++i) {
    const double drawn = pause.next().value;
    EXPECT_GE(drawn, longest / 2);
    EXPECT_LE(drawn, longest);
    longest = std::min(2 * longest, ReconnectPause::kMost);
  }
  pause.reset();
  EXPECT_LE(pause.next().value, ReconnectPause::kFirst);
}

}  // namespace
}  // namespace regatta::node_agent
