#include "regatta/platform/controller/controller_runtime.h"

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>

#include "regatta/base/os/clock.h"
#include "regatta/platform/store/store.h"

namespace regatta::controller {
namespace {

// A store whose commits end when the test says so.
class SlowStore : public store::Store {
 public:
  struct Control {
    std::atomic<bool> may_commit = true;
    std::atomic<int> commits = 0;
    Status status;
  };
  explicit SlowStore(std::shared_ptr<Control> control) : control_(std::move(control)) {}

  Result<store::Revision> load(const std::function<Status(const store::Record&)>&) override {
    return store::Revision{0};
  }
  Status commit(std::span<const store::Change>) override {
    while (!control_->may_commit)
      os::sleep_for(Seconds{0.001});
    ++control_->commits;
    return control_->status;
  }
  Status maintain() override { return {}; }
  Status backup_status() const override { return {}; }

 private:
  std::shared_ptr<Control> control_;
};

class ControllerRuntimeTest : public testing::Test {
 protected:
  void open() {
    RuntimeOptions options;
    options.policy = *sched::find_scheduling_policy("regatta");
    runtime_ = ControllerRuntime::open(loop_, std::make_unique<SlowStore>(store_), options,
                                       [this](const Error& error) { ended_ = error.message; })
                   .value();
  }
  void submit(const std::string& more = "") {
    const std::string spec = R"({"name":"a","roles":[{"devices":1}],"command":["x"])" + more + "}";
    const control::Submission job{spec, "ada"};
    const auto ids = runtime_->change([&](auto& core, const control::Moment& moment) {
      return core.submit({&job, 1}, "", "", moment);
    });
    ASSERT_TRUE(ids) << ids.error().message;
  }
  // Handles events until `is_done`, for at most 5 s.
  template <typename Done>
  bool run_until(Done is_done) {
    for (int i = 0; i < 5000 && !is_done(); ++i)
      if (!loop_.poll()) os::sleep_for(Seconds{0.001});
    return is_done();
  }

  http::EventLoop loop_;
  std::shared_ptr<SlowStore::Control> store_ = std::make_shared<SlowStore::Control>();
  std::unique_ptr<ControllerRuntime> runtime_;
  std::string ended_;
};

TEST_F(ControllerRuntimeTest, AnswersOnlyWhatIsDurable) {
  open();
  bool is_answered = false;
  runtime_->when_durable([&] { is_answered = true; });
  EXPECT_TRUE(is_answered);
  store_->may_commit = false;
  submit();
  is_answered = false;
  runtime_->when_durable([&] { is_answered = true; });
  std::vector<std::string> seen;
  runtime_->on_commit([&](std::span<const store::Change> changes) {
    for (const store::Change& change : changes)
      seen.push_back(change.key);
  });
  for (int i = 0; i < 20; ++i)
    loop_.poll();
  EXPECT_FALSE(is_answered);
  EXPECT_TRUE(seen.empty());
  store_->may_commit = true;
  EXPECT_TRUE(run_until([&] { return is_answered; }));
  EXPECT_GT(runtime_->durable(), 0);
}

TEST_F(ControllerRuntimeTest, OnlyReadsWhileTheDiskIsFullAndThenGoesOn) {
  open();
  store_->status = Error{Code::kExhausted, "the disk is full"};
  bool is_answered = false;
  submit();
  runtime_->when_durable([&] { is_answered = true; });
  EXPECT_TRUE(run_until([&] { return runtime_->is_read_only(); }));
  EXPECT_FALSE(is_answered);
  EXPECT_EQ(ended_, "");
  store_->may_commit = false;
  store_->status = {};
  store_->may_commit = true;
  EXPECT_TRUE(run_until([&] { return is_answered; }));
  EXPECT_FALSE(runtime_->is_read_only());
}

TEST_F(ControllerRuntimeTest, EndsWhenTheStoreCannotGoOn) {
  open();
  store_->status = Error{Code::kUnavailable, "fsync: I/O error"};
  bool is_answered = false;
  submit();
  runtime_->when_durable([&] { is_answered = true; });
  EXPECT_TRUE(run_until([&] { return !ended_.empty(); }));
  EXPECT_THAT(ended_, testing::HasSubstr("fsync"));
  EXPECT_FALSE(is_answered);
}

TEST_F(ControllerRuntimeTest, ExplainsWhyAJobWaits) {
  open();
  sched::ClusterNode facts;
  facts.name = "n0";
  facts.device_type = "cpu";
  facts.devices = 1;
  facts.device_memory_mib = 1024;
  const auto node = runtime_->change([&](auto& core, const control::Moment& moment) {
    return core.join({.facts = facts, .address = "n0", .journal_id = "j"}, moment);
  });
  ASSERT_TRUE(node);
  const std::string hour = R"(,"run_time":{"median":"1h"})";
  submit(hour);
  ASSERT_TRUE(run_until([&] { return runtime_->decision_stats().actions > 0; }));
  submit(hour);
  submit(hour);
  std::map<std::string, Result<WaitAnswer>> answers;
  const auto ask = [&](const std::string& job) {
    runtime_->explain_wait(
        job, [&answers, job](Result<WaitAnswer> answer) { answers.emplace(job, answer); });
  };
  ask("a-3");
  ask("a-9");
  ASSERT_TRUE(run_until([&] { return answers.size() == 2; }));
  const Result<WaitAnswer>& third = answers.at("a-3");
  ASSERT_TRUE(third) << third.error().message;
  EXPECT_EQ(third->position, 2);
  EXPECT_EQ(third->ahead, 1);
  ASSERT_EQ(third->explanation.blocking.jobs.size(), 1U);
  EXPECT_EQ(third->explanation.blocking.jobs[0].job, "a-1");
  ASSERT_TRUE(third->explanation.prediction);
  EXPECT_NEAR((third->explanation.prediction->start - third->explanation.now).value, 7200, 60);
  ASSERT_FALSE(answers.at("a-9"));
  EXPECT_EQ(answers.at("a-9").error().code, Code::kNotFound);
}

}  // namespace
}  // namespace regatta::controller
