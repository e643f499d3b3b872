// The audit of a running controller: what is noted, and that answers wait for it.
#include <filesystem>
#include <fstream>
#include <string>

#include <gmock/gmock.h>

#include "regatta/base/os/clock.h"
#include "regatta/platform/audit/audit_files.h"
#include "regatta/platform/controller_service/test_service.h"

namespace regatta::controller_service {
namespace {

using testing::HasSubstr;
using testing::Not;

class AuditTest : public testing::Test {
 protected:
  nlohmann::json newest() const { return service_->get("/v1/audit?limit=1").at("items").at(0); }
  std::string text_of_files() const {
    std::string text;
    for (const audit::AuditFile& file : audit::list_audit_files(folder_.path() + "/audit"))
      text += os::read_file(file.path).value();
    return text;
  }

  os::TempFolder folder_ = os::TempFolder::create().value();
  std::unique_ptr<TestService> service_ = std::make_unique<TestService>(folder_.path());
  std::string admin_ = service_->admin_token();
};

TEST_F(AuditTest, NotesEachChangeBeforeItsAnswerLeaves) {
  const char* job = R"({"name":"hello","roles":[{"devices":1}],"command":["true"]})";
  ASSERT_EQ(service_->send("POST", "/v1/jobs", admin_, job).status, 201);
  // The answer is here, so the record is in the file.
  EXPECT_THAT(text_of_files(), HasSubstr(R"("action":"POST /v1/jobs","object":"hello-1")"));
  EXPECT_EQ(newest().at("user"), "admin");
  EXPECT_EQ(newest().at("status"), 201);
  EXPECT_EQ(newest().at("address"), "127.0.0.1");
  service_->send("POST", "/v1/jobs/hello-1/cancel", admin_);
  EXPECT_EQ(newest().at("action"), "POST /v1/jobs/{job}/cancel");
  EXPECT_EQ(newest().at("object"), "hello-1");
  service_->send("DELETE", "/v1/users/none", admin_);
  EXPECT_EQ(newest().at("status"), 404);
  const std::int64_t number = newest().at("number");
  service_->get("/v1/jobs");
  EXPECT_EQ(newest().at("number"), number) << "a reader changes nothing";
}

TEST_F(AuditTest, NotesLoginsAndNeverASecret) {
  service_->send("PUT", "/v1/users/ada", admin_, R"({"role":"user","password":"correct horse"})");
  const http::Response made = service_->send("POST", "/v1/tokens", admin_, R"({"name":"ci"})");
  const std::string secret = nlohmann::json::parse(made.body).at("secret");
  service_->send("POST", "/v1/login", "", R"({"user":"ada","password":"wrong horse"})");
  EXPECT_EQ(newest().at("status"), 401);
  EXPECT_EQ(newest().at("object"), "ada");
  EXPECT_EQ(newest().at("user"), "");
  const http::Response in =
      service_->send("POST", "/v1/login", "", R"({"user":"ada","password":"correct horse"})");
  EXPECT_EQ(newest().at("user"), "ada");
  EXPECT_EQ(newest().at("status"), 200);
  const std::string cookie(http::find_header(in.headers, "Set-Cookie"));
  const std::string text = text_of_files();
  for (const std::string& hidden :
       {std::string("horse"), secret, admin_, cookie.substr(15, 30), std::string("argon2")})
    EXPECT_THAT(text, Not(HasSubstr(hidden)));
}

TEST_F(AuditTest, KeepsItsHeadInTheStoreAndMissesACutTailAtTheNextStart) {
  for (int i = 0; i < 3; ++i)
    service_->send("PUT", "/v1/users/ada", admin_, R"({"role":"user"})");
  nlohmann::json page;
  for (int i = 0; i < 500; ++i) {
    page = service_->get("/v1/audit");
    if (page.at("head") == page.at("stored_head")) break;
    os::sleep_for(Seconds{0.01});
  }
  EXPECT_EQ(page.at("head"), page.at("stored_head"));
  service_.reset();
  const std::string path = audit::list_audit_files(folder_.path() + "/audit").back().path;
  const std::string text = os::read_file(path).value();
  std::filesystem::resize_file(path, text.find('\n') + 1);
  service_ = std::make_unique<TestService>(folder_.path());
  const nlohmann::json items = service_->get("/v1/audit").at("items");
  EXPECT_EQ(items.at(1).at("action"), "audit damaged");
  EXPECT_THAT(items.at(1).at("object").get<std::string>(), HasSubstr("are missing at the end"));
}

TEST_F(AuditTest, LetsNoNameForgeALine) {
  service_->send("PUT", "/v1/users/a%22%2C%22user%22%3A%22admin", admin_, R"({"role":"user"})");
  service_->send("DELETE", "/v1/users/%C2%85%E2%80%A8x", admin_);
  const auto checked = audit::check_audit_files(audit::list_audit_files(folder_.path() + "/audit"),
                                                audit::AuditHead{});
  EXPECT_TRUE(checked) << checked.error().message;
  EXPECT_EQ(newest().at("object"), "?????x");
}

}  // namespace
}  // namespace regatta::controller_service
