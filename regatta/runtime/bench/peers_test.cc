#include "regatta/runtime/bench/peers.h"

#include <gmock/gmock.h>

namespace regatta::bench {
namespace {

using testing::HasSubstr;

const BenchTask kTask{
    .op = CollectiveOp::kAllReduce, .sizes = {1024, 4096}, .ranks = 2, .batches = 2};

TEST(ParsePeerOutput, ReadsALineASize) {
  const auto contender =
      parse_peer_output("gloo", kTask,
                        "{\"bytes\": 1024, \"wrong\": 0, \"batches_s\": [1e-6, 2e-6]}\n"
                        "{\"bytes\": 4096, \"wrong\": 3, \"batches_s\": [3e-6, 4e-6]}\n");
  ASSERT_TRUE(contender) << contender.error().message;
  EXPECT_EQ(contender->name, "gloo");
  EXPECT_THAT(contender->timings[0].batches_s, testing::ElementsAre(1e-6, 2e-6));
  EXPECT_EQ(contender->timings[1].wrong, 3);
}

TEST(ParsePeerOutput, RefusesWhatIsNotTimes) {
  for (const std::string text :
       {"warning: no device\n", "{}\n", "{\"wrong\": 0, \"batches_s\": []}\n",
        "{\"wrong\": 0, \"batches_s\": [-1]}\n", "{\"wrong\": 0, \"batches_s\": [\"1\"]}\n",
        "[1]\n"}) {
    const auto contender = parse_peer_output("gloo", kTask, text);
    ASSERT_FALSE(contender) << text;
    EXPECT_EQ(contender.error().code, Code::kInvalidInput);
    EXPECT_THAT(contender.error().message, HasSubstr("gloo: line of times: "));
  }
}

TEST(ParsePeerOutput, MissesASize) {
  const auto contender =
      parse_peer_output("gloo", kTask, "{\"wrong\": 0, \"batches_s\": [1e-6]}\n");
  ASSERT_FALSE(contender);
  EXPECT_THAT(contender.error().message, HasSubstr("1 lines of times for 2 sizes"));
}

TEST(FindPeer, NamesTheScriptThatMakesIt) {
  const auto program = find_peer("nothing");
  ASSERT_FALSE(program);
  EXPECT_EQ(program.error().code, Code::kUnsupported);
  EXPECT_THAT(program.error().message, HasSubstr("scripts/peers.sh"));
}

}  // namespace
}  // namespace regatta::bench
