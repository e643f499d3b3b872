#include "regatta/runtime/train/worker.h"

#include <array>
#include <cstdio>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include "regatta/base/core/ids.h"
#include "regatta/model/workload/job.h"
#include "regatta/runtime/train/internal/train_spec_json.h"
#include "regatta/runtime/train/test_run.h"

namespace regatta::train {
namespace {

using nlohmann::json;

// The agent's side of the channels of a few workers, each a thread of this process.
class Agent {
 public:
  explicit Agent(int workers) : endpoints_(static_cast<std::size_t>(workers)) {
    for (int rank = 0; rank < workers; ++rank)
      lines_.push_back(make_line());
  }

  rpc::WorkerChannel channel(int rank) {
    Line& line = at(lines_, rank);
    return rpc::WorkerChannel::over(line.worker_input, line.worker_output);
  }

  // Answers endpoints and gives the other events of `rank` until its channel ends.
  std::vector<json> serve(int rank) {
    Line& line = at(lines_, rank);
    const std::unique_ptr<std::FILE, int (*)(std::FILE*)> events(::fdopen(line.agent_input, "r"),
                                                                 &std::fclose);
    std::vector<json> seen;
    std::string text;
    for (int letter = std::fgetc(events.get()); letter != EOF; letter = std::fgetc(events.get())) {
      text.push_back(static_cast<char>(letter));
      if (letter != '\n') continue;
      json event = json::parse(text, nullptr, false);
      text.clear();
      if (event.value("event", "") == "endpoint") {
        note_endpoint(rank, event["text"]);
      } else {
        seen.push_back(std::move(event));
      }
    }
    const std::lock_guard lock(mutex_);
    ::close(std::exchange(line.agent_output, -1));
    return seen;
  }

 private:
  struct Line {
    int worker_input = -1;
    int worker_output = -1;
    int agent_input = -1;
    int agent_output = -1;  // guarded by mutex_; -1 once the worker has ended
  };

  static Line make_line() {
    std::array<int, 2> down{};
    std::array<int, 2> up{};
    if (::pipe(down.data()) != 0 || ::pipe(up.data()) != 0) std::abort();
    return {down[0], up[1], up[0], down[1]};
  }

  void note_endpoint(int rank, const std::string& text) {
    const std::lock_guard lock(mutex_);
    at(endpoints_, rank) = text;
    if (++arrived_ < endpoints_.size()) return;
    const std::string answer = json{{"peers", endpoints_}}.dump() + "\n";
    for (const Line& line : lines_) {
      if (line.agent_output < 0) continue;
      EXPECT_EQ(::write(line.agent_output, answer.data(), answer.size()),
                static_cast<ssize_t>(answer.size()));
    }
  }

  std::vector<Line> lines_;
  std::mutex mutex_;
  std::vector<std::string> endpoints_;
  std::size_t arrived_ = 0;
};

struct Outcome {
  Status status;
  std::vector<json> events;
};

std::vector<Outcome> run_workers(const workload::Job& job, const workload::Strategy& strategy) {
  const int workers = strategy.world_size();
  Agent agent(workers);
  std::vector<Outcome> outcomes(static_cast<std::size_t>(workers));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < workers; ++rank) {
    Outcome& outcome = at(outcomes, rank);
    TrainSpec spec;
    spec.job = job;
    spec.strategy = strategy;
    spec.trace_from_step = 1;
    spec.trace_to_step = 2;
    json sent = spec_to_json(spec);
    sent.update(
        {{"rank", rank}, {"world_size", workers}, {"server", "s0"}, {"job_token", "worker-test"}});
    threads.emplace_back([&agent, &outcome, rank, sent] {
      rpc::WorkerChannel channel = agent.channel(rank);
      outcome.status = run_train_worker(sent, channel);
    });
    threads.emplace_back([&agent, &outcome, rank] { outcome.events = agent.serve(rank); });
  }
  for (std::thread& thread : threads)
    thread.join();
  return outcomes;
}

std::map<std::string, int> count_by_name(const std::vector<json>& events) {
  std::map<std::string, int> counts;
  for (const json& event : events)
    ++counts[event.value("event", "")];
  return counts;
}

TEST(TrainWorker, EmitsStepsPhasesSpansAndTraffic) {
  workload::Job job = test::tiny_job();
  job.steps = 3;
  for (const Outcome& outcome : run_workers(job, {.pp = 2})) {
    ASSERT_TRUE(outcome.status) << outcome.status.error().message;
    EXPECT_THAT(count_by_name(outcome.events),
                testing::ElementsAre(testing::Pair("phases", 3), testing::Pair("spans", 1),
                                     testing::Pair("step", 3), testing::Pair("traffic", 1)));
    for (const json& event : outcome.events) {
      if (event["event"] == "step") {
        EXPECT_EQ(event["tokens"], 8 * 16);
        EXPECT_GT(event["loss"], 1.0);
        EXPECT_GT(event["time_s"], 0.0);
      } else if (event["event"] == "phases") {
        EXPECT_TRUE(workload::phases_from_json(event["phases"]));
      } else if (event["event"] == "spans") {
        EXPECT_EQ(event["step"], 1);
        const auto spans = workload::timeline_from_json(event["spans"]);
        ASSERT_TRUE(spans);
        EXPECT_GT(spans->size(), 20U);
      } else {
        EXPECT_EQ(event["shared_bytes"].size(), 2U);
      }
    }
  }
}

TEST(TrainWorker, RunsAlone) {
  workload::Job job = test::tiny_job();
  job.steps = 1;
  const auto outcomes = run_workers(job, {});
  ASSERT_TRUE(outcomes[0].status) << outcomes[0].status.error().message;
  EXPECT_THAT(count_by_name(outcomes[0].events),
              testing::ElementsAre(testing::Pair("phases", 1), testing::Pair("step", 1)));
}

TEST(TrainWorker, EndsWithTheErrorOfItsData) {
  workload::Job job = test::tiny_job();
  job.data_text = "/no/such/text";
  const auto outcomes = run_workers(job, {.dp = 2});
  for (const Outcome& outcome : outcomes) {
    ASSERT_FALSE(outcome.status);
    EXPECT_THAT(outcome.status.error().message, testing::HasSubstr("data /no/such/text"));
  }
}

TEST(TrainWorker, EndsWhenTheAgentIsGone) {
  std::array<int, 2> down{};
  std::array<int, 2> up{};
  ASSERT_EQ(::pipe(down.data()), 0);
  ASSERT_EQ(::pipe(up.data()), 0);
  ::close(down[1]);
  TrainSpec spec;
  spec.job = test::tiny_job();
  json sent = spec_to_json(spec);
  sent.update({{"rank", 0}, {"world_size", 1}});
  rpc::WorkerChannel channel = rpc::WorkerChannel::over(down[0], up[1]);
  const Status status = run_train_worker(sent, channel);
  ::close(up[0]);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, Code::kUnavailable);
}

}  // namespace
}  // namespace regatta::train
