#include "regatta/platform/container/container_config.h"

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

namespace regatta::container {
namespace {

using nlohmann::json;
using testing::Contains;
using testing::Not;

RankContainer request() {
  return {.image = "/image",
          .command = {"train"},
          .environment = {{"A", "1"},
                          {"PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"},
                          {"RANK", "9"}},
          .working_folder = "/w",
          .uid = 1000,
          .gid = 100,
          .groups = {100},
          .run = "/runs/1.1.0",
          .name = "regatta-n-1.1.0"};
}

TEST(ContainerConfig, RunsTheCommandAsTheUserWithoutRights) {
  const json config = container_config(
      request(), {.path = "/r", .image_environment = {"PATH=/opt/bin", "A=0"}, .bound = {}},
      {.rank = 3, .local_rank = 1});
  EXPECT_EQ(config["process"]["user"]["uid"], 1000);
  EXPECT_EQ(config["process"]["noNewPrivileges"], true);
  for (const auto& set : config["process"]["capabilities"])
    EXPECT_EQ(set.size(), 0U);
  const auto variables = config["process"]["env"].get<std::vector<std::string>>();
  EXPECT_THAT(variables, Contains("PATH=/opt/bin")) << "the image's, for the job has none";
  EXPECT_THAT(variables, Contains("A=1"));
  EXPECT_THAT(variables, Contains("RANK=3"));
  EXPECT_THAT(variables, Contains("LOCAL_RANK=1"));
  EXPECT_EQ(config["root"]["readonly"], false);
  // The node's network and processes: ranks reach each other as without a container.
  EXPECT_EQ(config["linux"]["namespaces"], json::array({{{"type", "mount"}}}));
  EXPECT_EQ(config["linux"]["cgroupsPath"], "/regatta-n-1.1.0-1");
}

TEST(ContainerConfig, BindsWhatWasOpened) {
  const json config = container_config(
      request(), {.path = "/r", .image_environment = {}, .bound = {{"/m/0", "/data", true}}}, {});
  const json& last = config["mounts"].back();
  EXPECT_EQ(last["source"], "/m/0");
  EXPECT_EQ(last["destination"], "/data");
  EXPECT_THAT(last["options"].get<std::vector<std::string>>(), Contains("ro"));
}

TEST(CdiDevice, AppliesItsEditsAndThoseOfItsDocument) {
  const json document = json::parse(R"({"cdiVersion":"0.6.0","kind":"nvidia.com/gpu",
      "containerEdits":{"env":["DRIVER=1"]},
      "devices":[{"name":"0","containerEdits":{"deviceNodes":[{"path":"/dev/nvidia0"}]}},
                 {"name":"1","containerEdits":{
                    "deviceNodes":[{"path":"/dev/nvidia1","major":195,"minor":1}],
                    "mounts":[{"hostPath":"/lib/x.so","containerPath":"/lib/x.so","options":["ro"]}],
                    "hooks":[{"hookName":"createContainer","path":"/bin/ldconfig"}]}}]})");
  json config =
      container_config(request(), {.path = "/r", .image_environment = {}, .bound = {}}, {});
  ASSERT_TRUE(apply_cdi_device({document}, "nvidia.com/gpu=1", config));
  EXPECT_EQ(config["linux"]["devices"].size(), 1U);
  EXPECT_EQ(config["linux"]["devices"][0]["minor"], 1);
  EXPECT_EQ(config["mounts"].back()["source"], "/lib/x.so");
  EXPECT_EQ(config["hooks"]["createContainer"][0]["path"], "/bin/ldconfig");
  EXPECT_THAT(config["process"]["env"].get<std::vector<std::string>>(), Contains("DRIVER=1"));
  const Status missing = apply_cdi_device({document}, "nvidia.com/gpu=7", config);
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().code, Code::kNotFound);
  EXPECT_FALSE(apply_cdi_device({json::parse(R"({"kind":"a/b","devices":[{"name":"x",
      "containerEdits":{"mounts":[{"hostPath":"/a"}]}}]})")},
                                "a/b=x", config));
}

}  // namespace
}  // namespace regatta::container
