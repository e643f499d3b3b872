#include "regatta/platform/controller/controller_runtime.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "regatta/base/core/ids.h"
#include "regatta/base/core/text.h"
#include "regatta/base/os/clock.h"
#include "regatta/base/os/log.h"
#include "regatta/platform/control/cluster_tables.h"
#include "regatta/platform/control/scheduling_view.h"
#include "regatta/platform/controller/decision_thread.h"
#include "regatta/platform/store/commit_queue.h"

namespace regatta::controller {
namespace {

constexpr Seconds kTick{0.25};
constexpr int kTicksPerDiskCheck = 4;
constexpr int kForecastJobs = 200;    // the first ones that wait
constexpr Seconds kForecastEvery{5};  // at most so often
constexpr double kForecastShare = 10;
constexpr Seconds kStateKept{60};     // of a decision, after the last question about it
constexpr double kDecisionShare = 4;  // a decision's time, at least so often until the next one

// Effects that wait for their commit.
struct Batch {
  store::Revision last = 0;
  std::vector<store::Change> changes;  // for those who watch
  std::vector<int> nodes;
};

}  // namespace

struct ControllerRuntime::Impl {
  Impl(http::EventLoop& event_loop, RuntimeOptions given, control::ClusterTables tables)
      : loop(event_loop),
        options(std::move(given)),
        core(options.control, std::move(tables)),
        decisions([this](DecisionReport report) {
          loop.post([this, alive = std::weak_ptr(life), report = std::move(report)]() mutable {
            if (!alive.expired()) decided(std::move(report));
          });
        }) {}

  control::Moment moment() const {
    return {.now = os::monotonic_now(),
            .unix_ms = static_cast<std::int64_t>(os::system_now().value * 1000)};
  }

  void flush() {
    control::Effects effects = core.take_effects();
    needs_decision |= effects.needs_decision;
    // The share of a core is for the long run; nodes are lost seldom.
    if (effects.is_urgent) next_decision = std::min(next_decision, soonest_decision);
    if (effects.changes.empty()) {
      // Orders of what is durable already leave when the commits before them are.
      if (batches.empty())
        send_orders(effects.nodes);
      else
        std::move(effects.nodes.begin(), effects.nodes.end(),
                  std::back_inserter(batches.back().nodes));
      return;
    }
    Batch& batch = batches.emplace_back();
    batch.last = effects.changes.back().revision;
    batch.nodes = std::move(effects.nodes);
    if (!watchers.empty()) batch.changes = effects.changes;
    queue->add(std::move(effects.changes));
  }

  void committed(const store::CommitReport& report) {
    is_disk_full = !report.status && report.status.error().code == Code::kExhausted;
    if (is_disk_full) return;  // the queue tries again until there is space
    if (!report.status) {
      if (!has_ended) ended(report.status.error());
      has_ended = true;
      return;
    }
    durable = report.durable;
    while (!batches.empty() && batches.front().last <= durable) {
      const Batch batch = std::move(batches.front());
      batches.pop_front();
      send_orders(batch.nodes);
      for (const auto& watcher : watchers)
        watcher(batch.changes);
    }
    while (!answers.empty() && answers.begin()->first <= durable) {
      const auto answer = std::move(answers.begin()->second);
      answers.erase(answers.begin());
      answer();
    }
  }

  void send_orders(const std::vector<int>& nodes) {
    if (!send) return;
    for (const int node : nodes) {
      const std::vector<control::ReplicaOrder> orders = core.orders_for(node, durable);
      if (!orders.empty()) send(at(core.tables().nodes, node).facts.name, orders);
    }
  }

  void tick() {
    loop.after(kTick, [this, alive = std::weak_ptr(life)] {
      if (!alive.expired()) tick();
    });
    core.tick(moment());
    core.remove_old(durable, moment());
    flush();
    if (options.is_disk_low && ++ticks % kTicksPerDiskCheck == 0)
      is_disk_low = options.is_disk_low();
    decide_if_due();
  }

  void decide_if_due() {
    const Seconds now = os::monotonic_now();
    if (!needs_decision || is_deciding || now < next_decision) return;
    needs_decision = false;
    is_deciding = true;
    decisions.decide({.view = scheduling_view(core.tables(), now, options.decision_depth),
                      .policy = options.policy,
                      .revision = core.tables().last_revision,
                      .keeps_state = now < explained_until});
  }

  void decided(DecisionReport report) {
    is_deciding = false;
    ++stats.decisions;
    stats.last_time = report.time;
    soonest_decision = os::monotonic_now() + options.decision_interval;
    next_decision =
        os::monotonic_now() + std::max(options.decision_interval, report.time * kDecisionShare);
    if (report.decision) {
      const control::CarriedOut done = carry_out(*report.decision, core, moment());
      stats.actions += done.actions;
      stats.outdated += done.outdated;
      needs_decision |= done.outdated > 0;
      stats.last_error.clear();
      flush();
    } else if (stats.last_error != report.decision.error().message) {
      stats.last_error = report.decision.error().message;
      os::log_error("the scheduler cannot decide: " + printable(stats.last_error, 300));
    }
    const bool is_answer = report.state != nullptr || !stats.last_error.empty();
    explainer.set_state(std::move(report.state));
    needs_decision |= !is_answer && !waits.empty();
    if (is_answer)
      for (const auto& wait : std::exchange(waits, {}))
        ask_explainer(wait, true);
    if (needs_decision) {
      loop.after(std::max(Seconds{0}, next_decision - os::monotonic_now()),
                 [this, alive = std::weak_ptr(life)] {
                   if (!alive.expired()) decide_if_due();
                 });
    }
  }

  // A question that is not answered yet.
  struct Wait {
    std::string handle;
    std::optional<sched::JobRequest> request;         // of a job that is not there
    std::function<void(Result<WaitAnswer>)> handler;  // null once it has run
    Result<WaitAnswer> latest = Error{Code::kUnavailable, ""};

    void answer() {
      if (const auto function = std::exchange(handler, nullptr)) function(std::move(latest));
    }
  };

  void explain(Wait wait) {
    explained_until = os::monotonic_now() + kStateKept;
    ask_explainer(std::make_shared<Wait>(std::move(wait)), false);
  }

  // `is_last`: the state is that of a decision after the question.
  void ask_explainer(const std::shared_ptr<Wait>& wait, bool is_last) {
    const auto take = [this, wait, is_last,
                       alive = std::weak_ptr(life)](Result<WaitAnswer> answer) {
      loop.post([this, wait, is_last, alive, answer = std::move(answer)]() mutable {
        if (!alive.expired()) take_explanation(wait, is_last, std::move(answer));
      });
    };
    if (wait->request)
      explainer.explain_new(*wait->request, take);
    else
      explainer.explain(wait->handle, take);
  }

  // A forecast has at most a tenth of a core.
  void predict_when_due() {
    const Seconds now = os::monotonic_now();
    if (is_forecasting || now < next_forecast) return;
    // The state of a decision is kept for those who ask; the first one has it made.
    needs_decision |= now >= explained_until;
    explained_until = now + kStateKept;
    is_forecasting = true;
    explainer.predict_first(kForecastJobs,
                            [this, now, alive = std::weak_ptr(life)](
                                std::vector<sched::StartPrediction> made, Seconds at) {
                              loop.post([this, now, alive, made = std::move(made), at] {
                                if (!alive.expired())
                                  take_forecast(made, at, os::monotonic_now() - now);
                              });
                            });
    decide_if_due();
  }

  void take_forecast(const std::vector<sched::StartPrediction>& made, Seconds at, Seconds took) {
    is_forecasting = false;
    next_forecast = os::monotonic_now() + std::max(kForecastEvery, took * kForecastShare);
    starts.clear();
    const control::Moment present = moment();
    const auto unix_ms = [&](Seconds time) {
      return present.unix_ms + std::llround((time - present.now).value * 1000);
    };
    for (const sched::StartPrediction& each : made) {
      // One that was to start at once, and has not, is left out by the forecast.
      if (!std::isfinite(each.start.value) || each.start <= at) continue;
      starts[each.job] = {.early_ms = unix_ms(each.earliest),
                          .likely_ms = unix_ms(each.start),
                          .late_ms = std::isfinite(each.latest.value) ? unix_ms(each.latest) : 0};
    }
  }

  void take_explanation(const std::shared_ptr<Wait>& wait, bool is_last,
                        Result<WaitAnswer> answer) {
    const bool is_unknown = !answer && answer.error().code == Code::kNotFound;
    if (is_unknown && !is_last) {
      waits.push_back(wait);
      needs_decision = true;
      return decide_if_due();
    }
    const bool is_complete = !answer || answer->explanation.start || answer->explanation.prediction;
    wait->latest = std::move(answer);
    if (is_complete) return wait->answer();
    loop.after(options.forecast_limit, [wait, alive = std::weak_ptr(life)] {
      if (!alive.expired()) wait->answer();
    });
  }

  http::EventLoop& loop;
  RuntimeOptions options;
  control::ClusterController core;
  std::function<void(const Error&)> ended;
  bool has_ended = false;
  bool is_disk_full = false;
  bool is_disk_low = false;
  int ticks = 0;
  store::Revision durable = 0;
  std::deque<Batch> batches;
  std::multimap<store::Revision, std::function<void()>> answers;
  std::vector<std::function<void(std::span<const store::Change>)>> watchers;
  SendOrders send;
  bool needs_decision = true;
  bool is_deciding = false;
  Seconds next_decision;
  Seconds soonest_decision;  // where nodes are lost
  DecisionStats stats;
  Seconds explained_until;                             // so long the states of decisions are kept
  std::unordered_map<std::string, StartTimes> starts;  // of jobs, by handle
  Seconds next_forecast;
  bool is_forecasting = false;
  std::vector<std::shared_ptr<Wait>> waits;              // for the next decision
  std::shared_ptr<int> life = std::make_shared<int>(0);  // work that is posted ends with it
  std::unique_ptr<store::CommitQueue> queue;
  WaitExplainer explainer;
  DecisionThread decisions;
};

Result<std::unique_ptr<ControllerRuntime>> ControllerRuntime::open(
    http::EventLoop& loop, std::unique_ptr<store::Store> store, RuntimeOptions options,
    std::function<void(const Error&)> ended) {
  control::ClusterTables tables;
  const Seconds now = os::monotonic_now();
  REGATTA_TRY(last, store->load([&](const store::Record& record) {
    if (options.loaded) options.loaded(record);
    return load_record(record, now, tables);
  }));
  REGATTA_TRY_DO(finish_loading(last, tables));
  auto impl = std::make_unique<Impl>(loop, std::move(options), std::move(tables));
  impl->ended = std::move(ended);
  impl->durable = last;
  Impl* self = impl.get();
  impl->queue = std::make_unique<store::CommitQueue>(
      std::move(store), store::CommitQueueOptions{},
      [self, &loop, alive = std::weak_ptr(self->life)](const store::CommitReport& report) {
        loop.post([self, alive, report] {
          if (!alive.expired()) self->committed(report);
        });
      });
  loop.post([self, alive = std::weak_ptr(self->life)] {
    if (!alive.expired()) self->tick();
  });
  return std::unique_ptr<ControllerRuntime>(new ControllerRuntime(std::move(impl)));
}

ControllerRuntime::ControllerRuntime(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

ControllerRuntime::~ControllerRuntime() {
  impl_->life.reset();
}

const control::ClusterTables& ControllerRuntime::tables() const {
  return impl_->core.tables();
}

const RuntimeOptions& ControllerRuntime::options() const {
  return impl_->options;
}

void ControllerRuntime::hear(int node) {
  impl_->core.hear(node, impl_->moment());
}

control::ClusterController& ControllerRuntime::core() {
  return impl_->core;
}

control::Moment ControllerRuntime::moment() const {
  return impl_->moment();
}

void ControllerRuntime::flush() {
  impl_->flush();
  impl_->decide_if_due();
}

void ControllerRuntime::when_durable(std::function<void()> work) {
  const store::Revision last = tables().last_revision;
  if (last <= impl_->durable)
    work();
  else
    impl_->answers.emplace(last, std::move(work));
}

store::Revision ControllerRuntime::durable() const {
  return impl_->durable;
}

bool ControllerRuntime::is_leading() const {
  return os::monotonic_now() < impl_->queue->leads_until();
}

bool ControllerRuntime::is_read_only() const {
  return impl_->is_disk_full || impl_->is_disk_low;
}

void ControllerRuntime::on_commit(std::function<void(std::span<const store::Change>)> handler) {
  impl_->watchers.push_back(std::move(handler));
}

void ControllerRuntime::set_order_sender(SendOrders sender) {
  impl_->send = std::move(sender);
}

void ControllerRuntime::send_orders(int node) {
  impl_->send_orders({node});
}

void ControllerRuntime::set_policy(sched::SchedulingPolicy policy) {
  impl_->options.policy = std::move(policy);
  impl_->needs_decision = true;
}

const DecisionStats& ControllerRuntime::decision_stats() const {
  return impl_->stats;
}

void ControllerRuntime::explain_wait(const std::string& handle,
                                     std::function<void(Result<WaitAnswer>)> handler) {
  impl_->explain({.handle = handle, .request = {}, .handler = std::move(handler)});
}

void ControllerRuntime::explain_new(sched::JobRequest request,
                                    std::function<void(Result<WaitAnswer>)> handler) {
  const std::string name = request.name;
  impl_->explain({.handle = name, .request = std::move(request), .handler = std::move(handler)});
}

const StartTimes* ControllerRuntime::predicted_start(const std::string& handle) {
  impl_->predict_when_due();
  const auto found = impl_->starts.find(handle);
  return found == impl_->starts.end() ? nullptr : &found->second;
}

void ControllerRuntime::copy_store(const std::string& path, std::function<void(Status)> done) {
  impl_->queue->copy_to(path, [impl = impl_.get(), alive = std::weak_ptr(impl_->life),
                               done = std::move(done)](const Status& status) {
    impl->loop.post([alive, done, status] {
      if (!alive.expired()) done(status);
    });
  });
}

std::size_t ControllerRuntime::waiting_changes() const {
  return impl_->queue->waiting_changes();
}

}  // namespace regatta::controller
