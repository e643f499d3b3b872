#include "regatta/platform/controller/controller_runtime.h"

#include <atomic>
#include <functional>
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
  void submit() {
    const control::Submission job{R"({"name":"a","roles":[{"devices":1}],"command":["x"]})", "ada"};
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

}  // namespace
}  // namespace regatta::controller
