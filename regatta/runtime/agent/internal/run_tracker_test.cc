#include "regatta/runtime/agent/internal/run_tracker.h"

#include <string>

#include <gmock/gmock.h>

#include "regatta/runtime/agent/agent.pb.h"

namespace regatta::agent {
namespace {

using nlohmann::json;

constexpr Seconds kStart{100.0};

Seconds at(double s) {
  return kStart + Seconds{s};
}

RunDescription shape_of_four() {
  RunDescription shape;
  shape.run = 1;
  shape.rank_names = {"rank 0 (s0/0)", "rank 1 (s0/1)", "rank 2 (s1/0)", "rank 3 (s1/1)"};
  shape.server_of_rank = {0, 0, 1, 1};
  shape.servers = {{"s0", {{"nic0", "s0.nic0-leaf0"}}, true},
                   {"s1", {{"nic0", "s1.nic0-leaf0"}}, true}};
  return shape;
}

class RunTrackerTest : public testing::Test {
 protected:
  void line(int rank, const json& event, double s, int run = 1) {
    line_from(static_cast<std::size_t>(rank / 2), rank, event, s, run);
  }
  void line_from(std::size_t server, int rank, const json& event, double s, int run = 1) {
    proto::AgentEvent told;
    told.mutable_line()->set_run(run);
    told.mutable_line()->set_rank(rank);
    told.mutable_line()->set_text(event.dump());
    tracker_.on_event(server, told, at(s));
  }
  void error(int rank, const std::string& code, const std::string& message, double s) {
    line(rank, {{"event", "error"}, {"code", code}, {"message", message}}, s);
  }
  void exit(int rank, int status, int signal, double s) {
    proto::AgentEvent told;
    told.mutable_exit()->set_run(1);
    told.mutable_exit()->set_rank(rank);
    told.mutable_exit()->set_status(status);
    told.mutable_exit()->set_signal(signal);
    tracker_.on_event(static_cast<std::size_t>(rank / 2), told, at(s));
  }
  void pause(int rank, bool paused, double s) {
    proto::AgentEvent told;
    told.mutable_pause()->set_run(1);
    told.mutable_pause()->set_rank(rank);
    told.mutable_pause()->set_paused(paused);
    told.mutable_pause()->set_signal(19);
    tracker_.on_event(static_cast<std::size_t>(rank / 2), told, at(s));
  }
  void carrier(std::size_t server, bool up, double s, const std::string& interface = "nic0") {
    proto::AgentEvent told;
    told.mutable_carrier()->set_interface(interface);
    told.mutable_carrier()->set_up(up);
    tracker_.on_event(server, told, at(s));
  }
  void heartbeat(std::size_t server, double s) {
    proto::AgentEvent told;
    told.mutable_heartbeat();
    tracker_.on_event(server, told, at(s));
  }
  void heartbeats(double s) {
    heartbeat(0, s);
    heartbeat(1, s);
  }
  std::string failure(double s) {
    const auto error = tracker_.failure(at(s));
    return error ? error->message : "";
  }

  RunTracker tracker_{shape_of_four(), kStart};
};

TEST_F(RunTrackerTest, AnswersEndpointsOnceAllRanksSentTheirs) {
  for (const int rank : {2, 0, 3}) {
    line(rank, {{"event", "endpoint"}, {"text", "e" + std::to_string(rank)}}, 1);
  }
  EXPECT_FALSE(tracker_.take_peers());
  line(1, {{"event", "endpoint"}, {"text", "e1"}}, 1);
  EXPECT_THAT(*tracker_.take_peers(), testing::ElementsAre("e0", "e1", "e2", "e3"));
  EXPECT_FALSE(tracker_.take_peers());
  EXPECT_TRUE(tracker_.take_events().empty());
}

TEST_F(RunTrackerTest, SucceedsWhenEveryRankIsDoneAndEnded) {
  for (int rank = 0; rank < 4; ++rank) {
    EXPECT_FALSE(tracker_.succeeded());
    line(rank, {{"event", "done"}}, 1);
    exit(rank, 0, 0, 1);
  }
  EXPECT_TRUE(tracker_.succeeded());
  EXPECT_EQ(tracker_.take_events().size(), 4U);
}

TEST_F(RunTrackerTest, IgnoresWhatAnEarlierRunLeft) {
  line(0, {{"event", "step"}}, 1, 0);
  EXPECT_TRUE(tracker_.take_events().empty());
}

TEST_F(RunTrackerTest, NamesTheKilledRankThoughOthersComplainedFirst) {
  error(0, "unavailable", "rank 3 (s1/1): connection lost", 1.0);
  exit(0, 1, 0, 1.0);
  exit(3, 0, 9, 1.02);
  EXPECT_EQ(failure(1.1), "");
  EXPECT_EQ(failure(1.6), "rank 3 (s1/1): killed by signal 9 (Killed)");
}

TEST_F(RunTrackerTest, NamesTheServerWhoseAgentEndedWithItsWorkers) {
  exit(2, 0, 9, 1.0);
  tracker_.on_server_lost(1, "its agent was ended by signal 9 (Killed)", at(1.1));
  EXPECT_EQ(failure(1.6), "server s1: its agent was ended by signal 9 (Killed)");
}

TEST_F(RunTrackerTest, NamesTheServerThatFellSilent) {
  pause(3, true, 1.0);
  heartbeat(1, 1.0);
  heartbeat(0, 4.9);
  EXPECT_EQ(failure(4.9), "");
  EXPECT_EQ(failure(5.01),
            "server s1: no heartbeat for 4 s; its processes are stopped or the server is down");
}

TEST_F(RunTrackerTest, WaitsForASilentServerBeforeItBlamesAPeer) {
  heartbeat(1, 1.0);
  heartbeat(0, 3.4);
  error(0, "unavailable", "connection to rank 2 lost", 3.4);
  EXPECT_EQ(failure(4.6), "");
  heartbeat(0, 5.0);
  EXPECT_THAT(failure(5.01), testing::StartsWith("server s1: no heartbeat"));
}

TEST_F(RunTrackerTest, NamesAPausedRankAfterItsTime) {
  pause(1, true, 1.0);
  heartbeats(5.0);
  EXPECT_EQ(failure(5.5), "");
  EXPECT_EQ(failure(5.7),
            "rank 1 (s0/1): stopped by signal 19 (Stopped (signal)); continue it with kill -CONT");
}

TEST_F(RunTrackerTest, ForgetsAPauseThatEnded) {
  pause(1, true, 1.0);
  pause(1, false, 2.0);
  heartbeats(9.0);
  EXPECT_EQ(failure(9.1), "");
}

TEST_F(RunTrackerTest, NamesTheLinkThatLostItsCarrier) {
  carrier(1, false, 1.0);
  heartbeats(3.9);
  EXPECT_EQ(failure(3.9), "");
  EXPECT_EQ(failure(4.1), "link s1.nic0-leaf0: carrier lost");
}

TEST_F(RunTrackerTest, NamesTheLinkWhenWorkersFailBeforeItsTime) {
  error(0, "unavailable", "connection to rank 2 lost", 1.0);
  carrier(1, false, 1.5);
  heartbeats(2.0);
  EXPECT_EQ(failure(2.1), "link s1.nic0-leaf0: carrier lost");
}

TEST_F(RunTrackerTest, SurvivesAFlappingLinkAndForeignInterfaces) {
  carrier(1, false, 1.0);
  carrier(1, true, 2.0);
  carrier(0, false, 1.0, "nic7");
  heartbeats(9.0);
  EXPECT_EQ(failure(9.1), "");
}

TEST_F(RunTrackerTest, BlamesNoInterfaceOfARealServerThatWasDownBefore) {
  RunDescription shape = shape_of_four();
  shape.servers = {{"s0", {}, false}, {"s1", {}, false}};
  tracker_ = RunTracker(shape, kStart);
  tracker_.carrier_was_down(0, "eth7", at(0));
  exit(1, 0, 9, 1.0);
  EXPECT_EQ(failure(1.6), "rank 1 (s0/1): killed by signal 9 (Killed)");
  carrier(1, false, 0.5, "eth0");
  EXPECT_EQ(failure(1.6), "server s1: carrier lost on its interface eth0");
}

TEST_F(RunTrackerTest, FallsBackToTheFirstComplaint) {
  error(2, "timeout", "rank 0 made no progress", 1.0);
  error(1, "unavailable", "connection to rank 2 lost", 1.1);
  heartbeats(2.0);
  EXPECT_EQ(failure(1.9), "");
  EXPECT_EQ(failure(2.05), "rank 2 (s1/0): rank 0 made no progress");
}

TEST_F(RunTrackerTest, TellsHowAWorkerEndedWithoutAWord) {
  proto::AgentEvent log;
  log.mutable_log()->set_run(1);
  log.mutable_log()->set_rank(2);
  log.mutable_log()->set_text("out of memory");
  tracker_.on_event(1, log, at(1));
  exit(2, 3, 0, 1.0);
  EXPECT_EQ(failure(1.6),
            "rank 2 (s1/0): ended with exit status 3; its last line was: out of memory");
}

TEST_F(RunTrackerTest, RejectsAnEndWithoutDone) {
  exit(2, 0, 0, 1.0);
  EXPECT_EQ(failure(1.6), "rank 2 (s1/0): ended before its work was done");
}

TEST_F(RunTrackerTest, GivesUpOnARankThatDoesNotJoin) {
  line(0, {{"event", "endpoint"}, {"text", "e"}}, 1);
  heartbeats(119.5);
  EXPECT_EQ(failure(119.5), "");
  heartbeats(120);
  EXPECT_EQ(failure(120), "rank 1 (s0/1): did not join within 120 s");
}

TEST_F(RunTrackerTest, KeepsTheErrorsCode) {
  error(2, "invalid_input", "no such file", 1.0);
  EXPECT_EQ(tracker_.failure(at(1.6))->code, Code::kInvalidInput);
}

TEST_F(RunTrackerTest, SurvivesLinesThatAreNoEvents) {
  line(0, json::array(), 1);
  line(0, {{"event", 3}}, 1);
  line_from(1, 9, {{"event", "step"}}, 1);
  line_from(1, -1, {{"event", "step"}}, 1);
  line(0, {{"event", "endpoint"}, {"text", 3}}, 1);
  EXPECT_TRUE(tracker_.take_events().empty());
  EXPECT_FALSE(tracker_.succeeded());
}

}  // namespace
}  // namespace regatta::agent
