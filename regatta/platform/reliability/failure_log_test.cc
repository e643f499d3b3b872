#include "regatta/platform/reliability/failure_log.h"

#include <filesystem>

#include <gtest/gtest.h>

#include "regatta/base/core/test_files.h"
#include "regatta/platform/reliability/failure_mix.h"

namespace regatta::reliability {
namespace {

const std::filesystem::path kTraces = REGATTA_TESTDATA "/../../../../../shared/data/cluster";

constexpr const char* kLives = "SN,location,insert,remove,duration,out,event\n";

std::string error_of_lives(const std::string& rows) {
  const auto log = read_gpu_lives(kLives + rows, "t.csv");
  return log ? "" : log.error().message;
}

TEST(ReadGpuLives, MakesStaysAndFailuresOfAGpu) {
  const auto log = read_gpu_lives(std::string(kLives) +
                                      "0321516,c15-1c2s4n0,1970-01-02 00:00:00,1970-01-05 "
                                      "12:00:00,1,FALSE,DBE\n"
                                      "0321516,c15-1c1s4n0,,1970-01-03 06:00:00,,,OTB\n"
                                      "0321516,c15-1c1s4n0,,1970-01-03 06:02:00,,,DBE\n",
                                  "t.csv");
  ASSERT_TRUE(log) << log.error().message;
  ASSERT_EQ(log->units.size(), 1U);
  const LoggedUnit& unit = log->units.front();
  EXPECT_EQ(unit.batch, "0321");
  ASSERT_EQ(unit.stays.size(), 1U);
  EXPECT_EQ(unit.stays.front().start, kDay);
  EXPECT_EQ(unit.stays.front().place, 2);
  ASSERT_EQ(unit.failures.size(), 2U) << "two within minutes are one";
  EXPECT_EQ(unit.failures.back().start, 4.5 * kDay);
  EXPECT_EQ(log->end, 4.5 * kDay);
  EXPECT_NE(unit.in_service(2 * kDay), nullptr);
  EXPECT_EQ(unit.in_service(5 * kDay), nullptr);
}

TEST(ReadGpuLives, ErrorsNameLineColumnAndRemedy) {
  EXPECT_EQ(error_of_lives("0321516,c1-1c2s4n0,1970-13-02 00:00:00,1970-01-05 12:00:00,,,\n"),
            "t.csv:2: insert: '1970-13-02 00:00:00' is not a time such as 2017-04-09 21:36:19; "
            "correct it");
  EXPECT_EQ(error_of_lives("0321516,c1-1c2s4n0,1970-02-02 00:00:00,1970-01-05 12:00:00,,,\n"),
            "t.csv:2: insert: '1970-02-02 00:00:00' is not a time before 'remove'; correct it");
  EXPECT_EQ(error_of_lives("0321516,here,1970-01-02 00:00:00,1970-01-05 12:00:00,,,\n"),
            "t.csv:2: location: 'here' is not a location such as c13-5c2s2n1; correct it");
  EXPECT_EQ(error_of_lives("0321516,c1-1c2s4n0,,1970-01-05 12:00:00,,,XID\n"),
            "t.csv:2: event: 'XID' is not DBE, OTB or empty; correct it");
  EXPECT_EQ(error_of_lives("1,c1-1c2s4n0,,1970-01-05 12:00:00,,,DBE\n"),
            "t.csv:2: SN: '1' is not a serial number of at least 4 digits; correct it");
}

TEST(ReadServerFaults, CountsServersWithoutAFaultToo) {
  const auto log = read_server_faults("node,start_d,end_d\n1,2.5,3\n1,4,\n", "f.csv", 3);
  ASSERT_TRUE(log) << log.error().message;
  EXPECT_EQ(log->units.size(), 3U);
  EXPECT_EQ(log->failures(), 2);
  EXPECT_EQ(log->end, 4 * kDay);
  EXPECT_EQ(log->units[1].in_service(2.7 * kDay), nullptr);
  EXPECT_NE(log->units[1].in_service(3.5 * kDay), nullptr);
}

TEST(ReadServerFaults, ErrorsNameLineColumnAndRemedy) {
  const auto message = [](const std::string& row) {
    return read_server_faults("node,start_d,end_d\n" + row, "f.csv", 3).error().message;
  };
  EXPECT_EQ(message("3,1,2\n"), "f.csv:2: node: '3' is not a whole number from 0 to 2; correct it");
  EXPECT_EQ(message("0,1,0.5\n"),
            "f.csv:2: end_d: '0.5' is not a number from 1 to 1000000; correct it");
}

TEST(FailureLog, OfThePublishedTracesHasThePublishedNumbers) {
  if (!std::filesystem::exists(kTraces / "titan")) GTEST_SKIP() << "no traces beside the tree";
  const auto gpus =
      read_gpu_lives(read_test_file(kTraces / "titan/titan_gpu_life.csv"), "titan_gpu_life.csv");
  ASSERT_TRUE(gpus) << gpus.error().message;
  EXPECT_EQ(gpus->units.size(), 30207U);
  const auto servers = read_server_faults(
      read_test_file(kTraces / "infinitehbd/faults_day_0_to_232.csv"), "faults.csv", 400);
  ASSERT_TRUE(servers) << servers.error().message;
  EXPECT_EQ(servers->failures(), 372);
}

}  // namespace
}  // namespace regatta::reliability
