#include "regatta/platform/audit/audit_log.h"

#include <filesystem>
#include <functional>
#include <string>

#include <gmock/gmock.h>

#include "regatta/base/core/text.h"
#include "regatta/base/os/clock.h"
#include "regatta/base/os/file.h"

namespace regatta::audit {
namespace {

using testing::HasSubstr;

class AuditLogTest : public testing::Test {
 protected:
  std::unique_ptr<AuditLog> open(const AuditHead& known = {}, std::size_t file_bytes = 8 << 20) {
    auto log =
        AuditLog::open(loop_, {.folder = folder_.path(), .file_bytes_max = file_bytes}, known);
    EXPECT_TRUE(log) << log.error().message;
    return std::move(*log);
  }
  void poll_until(const std::function<bool()>& is_done) {
    const Seconds end = os::monotonic_now() + Seconds{5};
    while (!is_done() && os::monotonic_now() < end)
      if (!loop_.poll()) os::sleep_for(Seconds{0.001});
    EXPECT_TRUE(is_done());
  }
  // Adds records and waits for the last one; returns the head.
  AuditHead add(AuditLog& log, int count) {
    std::int64_t last = 0;
    for (int i = 0; i < count; ++i)
      last =
          log.add({.user = i % 2 == 0 ? "ada" : "eve", .action = "POST /v1/jobs", .status = 201});
    bool is_durable = false;
    log.when_durable(last, [&] { is_durable = true; });
    poll_until([&] { return is_durable; });
    return log.head();
  }
  Result<AuditCheck> check() const {
    return check_audit_files(list_audit_files(folder_.path()), {});
  }
  std::string path(std::int64_t first) const {
    return folder_.path() + "/" + audit_file_name(first);
  }

  os::TempFolder folder_ = os::TempFolder::create().value();
  http::EventLoop loop_;
};

TEST_F(AuditLogTest, WritesAChainThatGoesOnAfterARestart) {
  AuditHead head = add(*open(), 3);
  EXPECT_EQ(head.number, 3);
  head = add(*open(head), 2);
  const auto checked = check();
  ASSERT_TRUE(checked) << checked.error().message;
  EXPECT_EQ(checked->head.number, 5);
  EXPECT_EQ(checked->head.hash, head.hash);
}

TEST_F(AuditLogTest, TurnsToTheNextFileAndThePagesGoOverAll) {
  const auto log = open({}, 1000);
  for (int i = 0; i < 10; ++i)
    add(*log, 1);
  EXPECT_GT(list_audit_files(folder_.path()).size(), 2U);
  EXPECT_TRUE(check());
  std::string seen;
  std::int64_t before = 0;
  for (int page = 0; page < 9; ++page) {
    const auto read = read_audit_page(folder_.path(), before, 3, "");
    ASSERT_TRUE(read);
    for (const AuditLink& link : read->links)
      seen += std::to_string(link.record.number) + " ";
    before = read->next;
    if (before == 0) break;
  }
  EXPECT_EQ(seen, "10 9 8 7 6 5 4 3 2 1 ");
  bool is_read = false;
  log->read(0, 100, "nobody",
            [&](const Result<AuditPage>& page) { is_read = page && page->links.empty(); });
  poll_until([&] { return is_read; });
}

TEST_F(AuditLogTest, DropsALineThatACrashCutAndThatNoAnswerRestsOn) {
  const AuditHead head = add(*open(), 2);
  const std::string text = os::read_file(path(1)).value();
  ASSERT_TRUE(os::write_file(path(1), text + R"({"number":3,"ti)"));
  const auto log = open(head);
  EXPECT_EQ(log->damage(), "");
  add(*log, 1);
  EXPECT_EQ(check()->head.number, 3);
}

TEST_F(AuditLogTest, NoticesATailThatWasCutOffByTheHeadInTheStore) {
  const AuditHead head = add(*open(), 3);
  const std::string text = os::read_file(path(1)).value();
  std::filesystem::resize_file(path(1), 0);
  ASSERT_TRUE(os::write_file(path(1), text.substr(0, text.find('\n') + 1)));
  const auto log = open(head);
  EXPECT_EQ(log->damage(), "the records 2 to 3 are missing at the end");
  add(*log, 1);
  EXPECT_THAT(check().error().message, HasSubstr("records 2 to 3 before it were removed"));
}

TEST_F(AuditLogTest, KeepsADamagedFileAndSaysSoInItsNextRecord) {
  const AuditHead head = add(*open(), 2);
  std::string text = os::read_file(path(1)).value();
  text.replace(text.find("ada"), 3, "eve");
  ASSERT_TRUE(os::write_file(path(1), text));
  const auto log = open(head);
  EXPECT_THAT(log->damage(), HasSubstr("record 1: it was changed"));
  add(*log, 1);
  const auto page = read_audit_page(folder_.path(), 0, 10, "");
  EXPECT_EQ(page->links.back().record.action, "audit damaged");
  EXPECT_TRUE(std::filesystem::exists(path(1) + ".damaged"));
}

TEST_F(AuditLogTest, MissesAllFilesWhereTheStoreKnowsOfRecords) {
  const AuditHead head = add(*open(), 2);
  std::filesystem::remove(path(1));
  EXPECT_EQ(open(head)->damage(), "the records 1 to 2 are missing");
}

}  // namespace
}  // namespace regatta::audit
