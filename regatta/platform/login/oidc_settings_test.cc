#include "regatta/platform/login/oidc_settings.h"

#include <string>

#include <gmock/gmock.h>

#include "regatta/base/os/file.h"

namespace regatta::login {
namespace {

using testing::HasSubstr;

class OidcSettingsTest : public testing::Test {
 protected:
  Result<OidcSettings> parse(const std::string& issuer, const std::string& role) const {
    const std::string text = "issuer: " + issuer +
                             "\nclient_id: regatta\nclient_secret_file: " + folder_.path() +
                             "/secret\nca_file: " + folder_.path() +
                             "/ca\naddress: https://head:7780\nroles: {staff: " + role + "}\n";
    return parse_oidc_settings(text, "oidc.yaml");
  }

  os::TempFolder folder_ = os::TempFolder::create().value();
};

TEST_F(OidcSettingsTest, ReadsTheSecretFromItsFile) {
  ASSERT_TRUE(os::write_file(folder_.path() + "/secret", "s3cret\n"));
  ASSERT_TRUE(os::write_file(folder_.path() + "/ca", "pem"));
  const auto settings = parse("https://login.example", "operator");
  ASSERT_TRUE(settings) << settings.error().message;
  EXPECT_EQ(settings->client_secret, "s3cret");
  ASSERT_EQ(settings->roles.size(), 1U);
  EXPECT_EQ(settings->roles[0].second, identity::AccessRole::kOperator);
}

TEST_F(OidcSettingsTest, SaysWhatIsWrong) {
  EXPECT_THAT(parse("http://login.example", "user").error().message, HasSubstr("issuer"));
  EXPECT_THAT(parse("https://login.example/", "user").error().message, HasSubstr("issuer"));
  EXPECT_THAT(parse("https://login.example", "king").error().message, HasSubstr("oidc.yaml:6"));
  EXPECT_THAT(parse("https://login.example", "user").error().message, HasSubstr("secret"));
}

}  // namespace
}  // namespace regatta::login
