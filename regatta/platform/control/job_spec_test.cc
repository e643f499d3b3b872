#include "regatta/platform/control/job_spec.h"

#include <csignal>

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

constexpr const char* kTraining =
    R"({"name":"gpt","roles":[{"name":"trainer","replicas":2,"devices":2}],"train":{"model":
        {"kind":"gpt","layers":2,"hidden":64,"heads":4,"seq":16,"vocab":256},
        "data":{"text":"/usr/share/common-licenses"},"global_batch":4,"steps":3,"optimizer":
        {"lr":1e-4}}})";

TEST(JobSpec, ReadsATrainingJobInPlaceOfACommand) {
  const auto spec = parse_job_spec(kTraining, "job");
  ASSERT_TRUE(spec) << spec.error().message;
  EXPECT_TRUE(spec->command.empty());
  EXPECT_THAT(spec->training, HasSubstr(R"("lr":1e-4)"));
  EXPECT_EQ(ranks_of_replica(*spec, 0), 2) << "a rank for each device";
  EXPECT_THAT(spec->request.device_types, ElementsAre("cpu", "emulated"));
}

TEST(JobSpec, SaysWhatIsWrongWithATrainingJob) {
  const auto error_of = [](std::string_view from, std::string_view to) {
    std::string json = kTraining;
    json.replace(json.find(from), from.size(), to);
    const auto spec = parse_job_spec(json, "job");
    return spec ? std::string() : spec.error().message;
  };
  EXPECT_THAT(error_of("\"layers\":2,", ""), HasSubstr("layers"));
  EXPECT_THAT(error_of("\"/usr", "\"usr"), HasSubstr("data.text: 'usr"));
  EXPECT_THAT(error_of(",\"steps\":3", ""), HasSubstr("steps"));
  EXPECT_THAT(error_of("\"kind\":\"gpt\"", "\"from\":\"/etc/passwd\""), HasSubstr("from"));
  EXPECT_THAT(error_of("\"name\":\"gpt\"", "\"name\":\"gpt\",\"command\":[\"a\"]"),
              HasSubstr("command: a training job has its own"));
}

TEST(JobSpec, ReadsHowAJobIsStoppedAndWhereItSaves) {
  const auto spec = parse_job_spec(
      R"({"name":"a","roles":[{"devices":1}],"command":["x"],"checkpoint_folder":"/shared/a",
          "stop":{"signal":"USR1","grace":"90s"}})",
      "job");
  ASSERT_TRUE(spec) << spec.error().message;
  EXPECT_EQ(spec->checkpoint_folder, "/shared/a");
  EXPECT_EQ(spec->stop_signal, SIGUSR1);
  EXPECT_EQ(spec->stop_grace, Seconds{90});
  const auto wrong = parse_job_spec(
      R"({"name":"a","roles":[{"devices":1}],"command":["x"],"stop":{"signal":"KILL"}})", "job");
  ASSERT_FALSE(wrong);
  EXPECT_THAT(wrong.error().message, HasSubstr("stop.signal"));
}

TEST(JobSpec, ReadsTheContainerOfItsRanks) {
  const auto spec = parse_job_spec(
      R"({"name":"a","roles":[{"devices":1}],"command":["x"],"image":"/images/torch",
          "image_read_only":true,"mounts":["/data"],"cdi":["regatta.gpu/slice=small"]})",
      "job");
  ASSERT_TRUE(spec) << spec.error().message;
  EXPECT_EQ(spec->container.path, "/images/torch");
  EXPECT_TRUE(spec->container.is_read_only);
  EXPECT_THAT(spec->container.mounts, ElementsAre("/data"));
  const auto error_of = [](const std::string& more) {
    const auto wrong = parse_job_spec(
        R"({"name":"a","roles":[{"devices":1}],"command":["x"])" + more + "}", "job");
    return wrong ? std::string() : wrong.error().message;
  };
  EXPECT_THAT(error_of(R"(,"image":"ubuntu:22.04")"), HasSubstr("image: no absolute path"));
  EXPECT_THAT(error_of(R"(,"mounts":["/data"])"),
              HasSubstr("mounts: it is for jobs with an image"));
  EXPECT_THAT(error_of(R"(,"image":"/i","cdi":["nvidia.com/gpu=all"])"), HasSubstr("cdi"));
}

TEST(JobArray, ReadsRangesStepsAndTheLimit) {
  const auto array = parse_job_array("0-10:5,20,30-31%2");
  ASSERT_TRUE(array) << array.error().message;
  EXPECT_EQ(array->limit, 2);
  std::vector<int> indices;
  for (int i = 0; i < array->size(); ++i) {
    indices.push_back(array->index_at(i));
    EXPECT_EQ(array->position_of(indices.back()), i);
  }
  EXPECT_THAT(indices, ElementsAre(0, 5, 10, 20, 30, 31));
  EXPECT_EQ(array->position_of(6), -1);
  for (const char* wrong : {"", "a", "3-1", "0-9%0", "5,5", "0-9,4", "1-2-3", "0-9:0", "-1"})
    EXPECT_FALSE(parse_job_array(wrong)) << wrong;
  EXPECT_THAT(parse_job_array("0-10000").error().message, HasSubstr("10001 indices"));
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
