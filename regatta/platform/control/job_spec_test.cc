#include "regatta/platform/control/job_spec.h"

#include <gmock/gmock.h>

namespace regatta::control {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;

TEST(JobSpec, ReadsTheGangAndWhatItRuns) {
  const auto spec = parse_job_spec(
      R"({"name":"bert","queue":"research","roles":[{"name":"worker","replicas":2,"devices":8}],
          "command":["python3","train.py","--lr",0.1],"environment":{"SEED":"7"},
          "ranks":"device","working_folder":"/data","restart":{"rule":"on_failure","pause":"1min"},
          "after":[3,4],"run_time":{"median":"2h"}})",
      "job");
  ASSERT_TRUE(spec) << spec.error().message;
  EXPECT_THAT(spec->command, ElementsAre("python3", "train.py", "--lr", "0.1"));
  EXPECT_THAT(spec->environment, ElementsAre(Pair("SEED", "7")));
  EXPECT_THAT(spec->after, ElementsAre(3, 4));
  EXPECT_EQ(spec->request.run_time.median, Seconds{7200});
  EXPECT_EQ(ranks_of_replica(*spec, 0), 8);
  EXPECT_EQ(spec->restart.rule, RestartRule::kOnFailure);
}

TEST(JobSpec, NamesLineKeyAndRemedy) {
  const auto error_of = [](const char* json) {
    const auto spec = parse_job_spec(json, "job");
    return spec ? std::string() : spec.error().message;
  };
  EXPECT_THAT(error_of(R"({"name":"a","command":[],"roles":[{}]})"), HasSubstr("job:1: command"));
  EXPECT_THAT(error_of("{\"name\":\"a\",\n\"command\":[\"x\"],\n\"roles\":[{\"devices\":99}]}"),
              HasSubstr("job:3: roles[0].devices"));
  EXPECT_THAT(error_of(R"({"name":"a","command":["x"],"roles":[{}],"after":["b"]})"),
              HasSubstr("'b' is no number of a job"));
  EXPECT_THAT(error_of(R"({"name":"a","command":["x"],"roles":[{}],"working_folder":"data"})"),
              HasSubstr("begin it with /"));
}

TEST(JobSpec, PausesTwiceAsLongBeforeEachRestartUpToALimit) {
  const RestartPolicy policy{.first_pause = Seconds{10}, .pause_max = Seconds{60}};
  EXPECT_EQ(pause_before_restart(policy, 1), Seconds{10});
  EXPECT_EQ(pause_before_restart(policy, 3), Seconds{40});
  EXPECT_EQ(pause_before_restart(policy, 1000), Seconds{60});
}

}  // namespace
}  // namespace regatta::control
