#include "regatta/app/report/network_report.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "regatta/network/probe/test_clusters.h"

namespace regatta::report {
namespace {

class ProbeSummary : public testing::Test {
 protected:
  std::string summary(std::uint64_t probes, std::size_t faults, bool is_json = false) const {
    return ProbeEventFormat(fabric_.graph, matrix_, {.is_json = is_json})
        .summary(probes, faults, Seconds{10});
  }

  probe::Fabric fabric_{{.servers = 4}};
  probe::Matrix matrix_;
};

TEST_F(ProbeSummary, SaysThatAHealthyNetworkHasNoFault) {
  EXPECT_EQ(summary(1200, 0), "no fault found in 1200 probes of 0 paths over 10 s\n");
  EXPECT_NE(summary(1200, 0, true).find("\"faults\":0"), std::string::npos);
}

TEST_F(ProbeSummary, CountsTheFaultsOfARun) {
  EXPECT_EQ(summary(1200, 2), "2 faults found in 1200 probes of 0 paths over 10 s\n");
}

TEST_F(ProbeSummary, ClaimsNothingWithoutProbes) {
  EXPECT_EQ(summary(0, 0), "no probe was sent\n");
}

TEST(HealerText, NamesTheSocketAndWhatToStart) {
  EXPECT_EQ(healer_lost_text("/run/heal.sock"),
            "/run/heal.sock: the healer is gone; this looks for it again, start regatta heal\n");
  EXPECT_EQ(healer_back_text("/run/heal.sock"), "/run/heal.sock: the healer is back\n");
}

TEST(LabList, IsATableOfRunningLabsAndSaysWhenThereIsNone) {
  const std::vector<RunningLab> labs = {
      {.name = "lab-4x2", .servers = 4, .switches = 4, .faults = 1, .age = {90}}};
  const std::string text = lab_list_text(labs);
  EXPECT_NE(text.find("lab-4x2"), std::string::npos);
  EXPECT_NE(text.find("up, 1 faulty link"), std::string::npos);
  EXPECT_EQ(lab_list_json(labs)["labs"][0]["age_s"], 90.0);
  EXPECT_EQ(lab_list_text({}), "no lab is up\n");
  EXPECT_TRUE(lab_list_json({})["labs"].empty());
}

}  // namespace
}  // namespace regatta::report
