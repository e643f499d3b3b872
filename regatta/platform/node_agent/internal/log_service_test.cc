#include "regatta/platform/node_agent/internal/log_service.h"

#include <gmock/gmock.h>

#include "regatta/base/os/file.h"
#include "regatta/platform/node_agent/internal/rank_log.h"

namespace regatta::node_agent {
namespace {

class LogServiceTest : public testing::Test {
 protected:
  os::TempFolder folder_ = os::TempFolder::create().value();
  std::string run_ = folder_.path();
};

TEST_F(LogServiceTest, SendsALogInPartsAndFollowsItToTheEnd) {
  RankLogWriter log(run_, 0, 1 << 20);
  log.write(std::string(100'000, 'x'));
  bool is_over = false;
  std::string got;
  bool has_last = false;
  LogService service({.run_folder = [&](const auto&) { return run_; },
                      .is_over = [&](const auto&) { return is_over; },
                      .send =
                          [&](const node_protocol::LogPart& part) {
                            EXPECT_EQ(part.offset, static_cast<std::int64_t>(got.size()));
                            got += part.data;
                            has_last |= part.is_last;
                          }});
  service.request({.request = 1, .key = {1, 1, 0}, .is_following = true});
  while (service.serve().value == 0) {
  }
  EXPECT_EQ(got.size(), 100'000U);
  EXPECT_FALSE(has_last);
  log.write("end");
  is_over = true;
  while (service.serve().value >= 0) {
  }
  EXPECT_TRUE(has_last);
  EXPECT_TRUE(got.ends_with("xend"));
}

TEST_F(LogServiceTest, SendsNoMoreThanWasAskedFor) {
  RankLogWriter log(run_, 0, 1 << 20);
  log.write("0123456789");
  std::string got;
  LogService service({.run_folder = [&](const auto&) { return run_; },
                      .is_over = [](const auto&) { return false; },
                      .send = [&](const node_protocol::LogPart& part) { got += part.data; }});
  service.request({.request = 1, .key = {1, 1, 0}, .offset = 2, .length = 3});
  EXPECT_LT(service.serve().value, 0);
  EXPECT_EQ(got, "234");
}

TEST_F(LogServiceTest, AnswersWithTheMetricsOfAReplica) {
  ASSERT_TRUE(os::write_file(run_ + "/metrics", "{\"name\":\"x\",\"step\":1,\"value\":2}\n"));
  std::string got;
  LogService service({.run_folder = [&](const auto&) { return run_; },
                      .is_over = [](const auto&) { return false; },
                      .send = [&](const node_protocol::LogPart& part) { got += part.data; }});
  service.request({.request = 1, .key = {1, 1, 0}, .is_of_metrics = true});
  EXPECT_LT(service.serve().value, 0);
  EXPECT_THAT(got, testing::StartsWith("{\"series\":[{\"name\":\"x\""));
}

}  // namespace
}  // namespace regatta::node_agent
