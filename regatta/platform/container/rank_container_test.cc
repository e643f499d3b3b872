#include "regatta/platform/container/rank_container.h"

#include <gmock/gmock.h>

namespace regatta::container {
namespace {

TEST(RankContainer, IsReadAsItWasWritten) {
  const RankContainer request{.image = "/images/a",
                              .command = {"sh", "-c", "echo \"a b\""},
                              .environment = {{"A", "1"}, {"B", ""}},
                              .working_folder = "/w",
                              .is_read_only = true,
                              .mounts = {"/data"},
                              .own_mounts = {"/run/metrics"},
                              .cdi_devices = {"nvidia.com/gpu=0"},
                              .uid = 1000,
                              .gid = 100,
                              .groups = {100, 4},
                              .run = "/runs/1.1.0",
                              .store = "/images",
                              .name = "regatta-n-1.1.0"};
  const auto read = decode_rank_container(encode(request));
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(encode(*read), encode(request));
  EXPECT_EQ(read->environment, request.environment);
  EXPECT_EQ(read->groups, request.groups);
}

TEST(RankContainer, RefusesWhatIsCutOff) {
  EXPECT_FALSE(decode_rank_container(encode({}))) << "no command";
  EXPECT_FALSE(decode_rank_container("{}"));
  EXPECT_FALSE(decode_rank_container("{\"image\":"));
}

}  // namespace
}  // namespace regatta::container
