// history/test_past.h: a controller that makes changes as the real one does, for the tests.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "regatta/platform/control/cluster_controller.h"
#include "regatta/platform/control/scheduling_view.h"
#include "regatta/platform/sched/scheduling_policy.h"

namespace regatta::history {

class TestPast {
 public:
  void join(const std::string& name) {
    sched::ClusterNode facts;
    facts.name = name;
    facts.device_type = "cpu";
    facts.devices = 8;
    facts.device_memory_mib = 1024;
    EXPECT_TRUE(controller_.join({.facts = facts, .address = name, .journal_id = "j"}, moment_));
    save();
  }
  void submit(const std::string& more = "") {
    const std::string spec =
        R"({"name":"train","command":["work"],"roles":[{"devices":4}])" + more + "}";
    const control::Submission submission{spec, "ada"};
    const auto ids = controller_.submit({&submission, 1}, "", "", moment_);
    EXPECT_TRUE(ids) << ids.error().message;
    save();
  }
  void decide() {
    pass();
    const auto view = scheduling_view(controller_.tables(), moment_.now, 100);
    const auto decision =
        sched::decide(view.snapshot, view.queue, *sched::find_scheduling_policy("regatta"));
    EXPECT_TRUE(decision);
    carry_out(*decision, controller_, moment_);
    save();
  }
  // The node reports the first replica of the job's attempt.
  void report(control::JobId id, bool is_over, int exit_status) {
    pass();
    const control::Attempt& attempt = *controller_.tables().jobs.at(id).attempt;
    const control::ReplicaReport said{.key = {id, attempt.number, 0},
                                      .fence = attempt.fence,
                                      .is_over = is_over,
                                      .exit_status = exit_status};
    controller_.report(0, {&said, 1}, false, 0, moment_);
    save();
  }
  // Returns the changes since the last call.
  std::vector<store::Change> take_changes() {
    save();
    return std::exchange(changes_, {});
  }
  control::ClusterController& controller() { return controller_; }
  const control::Moment& moment() const { return moment_; }

 private:
  void pass() {
    moment_.now += Seconds{1};
    moment_.unix_ms += 1000;
  }
  void save() {
    for (store::Change& change : controller_.take_effects().changes)
      changes_.push_back(std::move(change));
  }

  control::ClusterController controller_{{}, {}};
  control::Moment moment_{.now = Seconds{100}, .unix_ms = 1'700'000'000'000};
  std::vector<store::Change> changes_;
};

}  // namespace regatta::history
