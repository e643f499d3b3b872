#include "regatta/network/simulate/scenario_yaml.h"

#include <gmock/gmock.h>

#include "regatta/base/core/test_files.h"
#include "regatta/network/simulate/test_scenario.h"

namespace regatta::simulate {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(ScenarioYaml, ReadsEveryPartOfAScenario) {
  const Scenario scenario = parse(
      "name: two rings\n"
      "cluster: cluster.yaml\n"
      "level: packet\n"
      "seed: 7\n"
      "resolution: 1us\n"
      "routing: {policy: ecmp, connections: 4, ports: planned, hash_seeds: shared}\n"
      "traffic:\n"
      "  - {pattern: ring_all_reduce, name: dp, bytes: 64MiB, ranks: rails, repeat: 3}\n"
      "  - {pattern: message, from: s0/0, to: s1/0, bytes: 1KiB, start: 2ms, after: dp}\n"
      "  - {pattern: all_to_all, bytes: 1GiB, ranks: [s0/0, s1/1]}\n"
      "failures:\n"
      "  - {at: 1ms, link: leaf0-spine1, until: 5s, local: 2ms, converged: 50ms}\n"
      "  - {at: 1ms, switch: spine0}\n");
  EXPECT_EQ(scenario.name, "two rings");
  EXPECT_EQ(scenario.level, Level::kPacket);
  EXPECT_EQ(scenario.seed, 7U);
  EXPECT_EQ(scenario.routing.connections, 4);
  EXPECT_TRUE(scenario.routing.plans_ports);
  EXPECT_TRUE(scenario.routing.shares_seed);
  ASSERT_EQ(scenario.traffic.size(), 3U);
  EXPECT_EQ(scenario.traffic[0].choice, RankChoice::kRails);
  EXPECT_EQ(scenario.traffic[0].repeat, 3);
  EXPECT_EQ(scenario.traffic[0].bytes.value, 64 << 20);
  EXPECT_EQ(scenario.traffic[1].name, "message-1");
  EXPECT_EQ(scenario.traffic[1].after, "dp");
  EXPECT_DOUBLE_EQ(scenario.traffic[1].start.value, 2e-3);
  EXPECT_THAT(scenario.traffic[2].ranks, ElementsAre("s0/0", "s1/1"));
  ASSERT_EQ(scenario.failures.size(), 2U);
  EXPECT_DOUBLE_EQ(scenario.failures[0].converged.value, 50e-3);
  EXPECT_EQ(scenario.failures[1].switch_name, "spine0");
}

TEST(ScenarioYaml, ReadsAStepAsNumbersOrFromAJob) {
  const Scenario scenario = parse(
      "traffic:\n"
      "  - {pattern: step, tp: 8, pp: 4, dp: 2, micro_batches: 16, forward: 10ms,\n"
      "     backward: 20ms, activations: 4MiB, gradients: 1GiB, aggregate: false}\n"
      "  - {pattern: step, job: job.yaml}\n");
  const SimulatedStep& step = scenario.traffic[0].step;
  EXPECT_EQ(step.tp * step.pp * step.dp, 64);
  EXPECT_EQ(step.micro_batches, 16);
  EXPECT_DOUBLE_EQ(step.backward.value, 20e-3);
  EXPECT_EQ(step.gradients.value, 1 << 30);
  EXPECT_FALSE(step.aggregates);
  EXPECT_EQ(scenario.traffic[1].job, "job.yaml");
}

TEST(ScenarioYaml, AcceptsOldNamesOfKeys) {
  const Scenario scenario = parse(
      "traffic: [{pattern: all_to_all, bytes: 1MB, fold: false}]\n"
      "failures: [{at: 1ms, stuck: s0.nic0-leaf0, back: 2ms}]\n");
  EXPECT_FALSE(scenario.traffic[0].aggregates);
  EXPECT_EQ(scenario.failures[0].pausing_nic, "s0.nic0-leaf0");
  EXPECT_DOUBLE_EQ(scenario.failures[0].until.value, 2e-3);
}

TEST(ScenarioYaml, TakesPacketsWithoutAHeader) {
  const auto header_of = [](const std::string& header) {
    return parse_scenario(
        "packet: {header: " + header + "}\ntraffic: [{pattern: all_to_all, bytes: 1MB}]\n",
        "scenario.yaml");
  };
  for (const auto& [text, bytes] : {std::pair{"0B", 0LL}, {"64B", 64LL}, {"65535B", 65535LL}}) {
    const auto scenario = header_of(text);
    ASSERT_TRUE(scenario) << scenario.error().message;
    EXPECT_EQ(scenario->packet.header.value, bytes);
  }
  EXPECT_EQ(header_of("1MiB").error().message,
            "scenario.yaml:1: packet.header: more than 65535 bytes; 30B to 100B are usual");
}

TEST(ScenarioYaml, RefusesBrokenFilesWithLineAndRemedy) {
  const std::vector<BrokenFile> files = broken_files(REGATTA_TESTDATA);
  EXPECT_GE(files.size(), 8U);
  for (const BrokenFile& file : files) {
    const auto scenario = parse_scenario(file.text, "scenario.yaml");
    ASSERT_FALSE(scenario) << file.name;
    EXPECT_EQ(scenario.error().message, file.expected) << file.name;
    EXPECT_EQ(scenario.error().code, Code::kInvalidInput) << file.name;
  }
}

TEST(ScenarioYaml, ReadsWhatExamplesAndDocumentsShow) {
  const std::vector<std::string> files = example_files(REGATTA_TESTDATA, "scenario");
  EXPECT_GE(files.size(), 2U);
  for (const std::string& text : files) {
    const auto scenario = parse_scenario(text, "scenario.yaml");
    EXPECT_TRUE(scenario) << scenario.error().message << "\n" << text;
  }
}

TEST(Trace, ReadsMessagesBelowItsHeading) {
  const auto trace =
      parse_trace("start_s,from,to,bytes\n# a comment\n0.5,s0/0,s1/1,42\r\n", "t.csv");
  ASSERT_TRUE(trace) << trace.error().message;
  ASSERT_EQ(trace->size(), 1U);
  EXPECT_DOUBLE_EQ((*trace)[0].start.value, 0.5);
  EXPECT_EQ((*trace)[0].to, "s1/1");
  EXPECT_EQ((*trace)[0].bytes.value, 42);
  EXPECT_EQ((*trace)[0].line, 3);
}

TEST(Trace, RefusesWhatIsNoMessageByItsLine) {
  const std::string heading = "start_s,from,to,bytes\n";
  const auto message = [](const std::string& text) {
    const auto trace = parse_trace(text, "t.csv");
    return trace ? std::string("read") : trace.error().message;
  };
  EXPECT_EQ(message("0,s0/0,s1/0,1\n"),
            "t.csv:1: the first line must be the heading start_s,from,to,bytes");
  EXPECT_EQ(message(heading), "t.csv: no message is in it; write at least one line");
  EXPECT_EQ(message(heading + "0,s0/0,s1/0\n"),
            "t.csv:2: not four fields; write start_s,from,to,bytes");
  EXPECT_THAT(message(heading + "-1,a,b,1\n"), HasSubstr("t.csv:2: the start is no number"));
  EXPECT_THAT(message(heading + "nan,a,b,1\n"), HasSubstr("t.csv:2: the start is no number"));
  EXPECT_THAT(message(heading + "0,a,b,1.5\n"), HasSubstr("t.csv:2: the bytes are no whole"));
}

}  // namespace
}  // namespace regatta::simulate
