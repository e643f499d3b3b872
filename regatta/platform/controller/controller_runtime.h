// controller/controller_runtime.h: the controller in its process: the state machine of control on
// an event loop, its store behind a commit queue, the scheduler in a thread of its own.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "regatta/base/core/result.h"
#include "regatta/base/core/units.h"
#include "regatta/base/http/event_loop.h"
#include "regatta/platform/control/cluster_controller.h"
#include "regatta/platform/controller/wait_explainer.h"
#include "regatta/platform/sched/scheduling_policy.h"
#include "regatta/platform/store/store.h"

namespace regatta::controller {

struct RuntimeOptions {
  control::ControllerOptions control;
  sched::SchedulingPolicy policy;
  std::size_t decision_depth = 2000;  // pending jobs of each queue that a decision looks at
  // At least between two decisions, and four times what the last one took: so the scheduler has at
  // most a fifth of a core.
  Seconds decision_interval{0.2};
  Seconds forecast_limit{1};  // how long an answer waits for the start that it predicts
  std::function<void(const store::Record&)> loaded;  // called with each record of the store
  // Whether the store's disk has so little space left that new requests are refused; asked about
  // once a second. Empty: never.
  std::function<bool()> is_disk_low;
};

// Sends orders to agents; node_sessions.h implements it.
using SendOrders =
    std::function<void(const std::string& node, std::span<const control::ReplicaOrder> orders)>;

struct DecisionStats {
  long long decisions = 0;
  long long actions = 0;
  long long outdated = 0;  // actions that the state did not allow any more
  Seconds last_time;
  std::string last_error;  // of the latest decision; "": it succeeded
};

// Belongs to the loop's thread. All changes go through change(): nothing leaves before it is
// durable.
class ControllerRuntime {
 public:
  // Loads the store. `ended`: called once when the store cannot go on; the process is to end, and
  // its successor loads what is durable.
  static Result<std::unique_ptr<ControllerRuntime>> open(http::EventLoop& loop,
                                                         std::unique_ptr<store::Store> store,
                                                         RuntimeOptions options,
                                                         std::function<void(const Error&)> ended);
  ~ControllerRuntime();
  ControllerRuntime(const ControllerRuntime&) = delete;
  ControllerRuntime& operator=(const ControllerRuntime&) = delete;

  const control::ClusterTables& tables() const;
  const RuntimeOptions& options() const;
  control::Moment moment() const;
  // Runs `work` on the state machine and queues what it changes; returns what `work` returns. An
  // answer that rests on it leaves by when_durable().
  template <typename Work>
  auto change(Work&& work) {
    auto result = work(core(), moment());
    flush();
    return result;
  }
  // A heartbeat: changes nothing that is stored.
  void hear(int node);
  // Calls `work` in the loop's thread once everything that is in memory now is durable; at once
  // when it is. Never calls it when the store fails first.
  void when_durable(std::function<void()> work);
  store::Revision durable() const;
  // Whether no other controller can have taken over yet. One that does not know it answers no agent
  // and no user: another one may have decided otherwise.
  bool is_leading() const;
  // The store's disk is full, or nearly: requests that change something are refused.
  bool is_read_only() const;
  // Called with the changes of each commit, after it is durable, until the owner is destroyed.
  // Handlers must not wait.
  void on_commit(std::function<void(std::span<const store::Change>)> handler);

  void set_order_sender(SendOrders sender);
  // Orders that are not answered are sent again; call it when a node has joined, too.
  void send_orders(int node);
  void set_policy(sched::SchedulingPolicy policy);
  const DecisionStats& decision_stats() const;
  // Why a pending job waits, from the latest decision or, where that does not have it, the next
  // one. `handler` runs once, in the loop's thread, and not after the runtime is gone: after
  // RuntimeOptions::forecast_limit without a prediction where there is none by then. kNotFound: the
  // decision did not consider the job.
  void explain_wait(const std::string& handle, std::function<void(Result<WaitAnswer>)> handler);
  std::size_t waiting_changes() const;
  // The same for a job as if it had been submitted now.
  void explain_new(sched::JobRequest request, std::function<void(Result<WaitAnswer>)> handler);
  // The predicted start of a pending job, of the first some hundred alone, as it was known some
  // seconds ago; null: not known. Somebody who asks has the predictions made anew.
  const StartTimes* predicted_start(const std::string& handle);
  // Copies the store into the new file `path`, with all that is in memory now; `done` runs in the
  // loop's thread, and not after the runtime is gone.
  void copy_store(const std::string& path, std::function<void(Status)> done);

 private:
  struct Impl;
  explicit ControllerRuntime(std::unique_ptr<Impl> impl);
  control::ClusterController& core();
  void flush();
  std::unique_ptr<Impl> impl_;
};

}  // namespace regatta::controller
