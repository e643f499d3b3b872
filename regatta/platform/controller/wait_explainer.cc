#include "regatta/platform/controller/wait_explainer.h"

#include <algorithm>
#include <atomic>
#include <map>
#include <thread>
#include <utility>

#include "regatta/base/core/mutex.h"
#include "regatta/base/http/event_loop.h"
#include "regatta/base/os/clock.h"
#include "regatta/base/os/process.h"

namespace regatta::controller {
namespace {

// A state that nothing changes grows old: then it is copied with the time of now.
constexpr Seconds kAgeMax{10};
constexpr int kForecastsMax = 8;  // that wait; more are left out

// Runs what is posted, in order.
class WorkThread {
 public:
  WorkThread() : thread_(os::signal_masked_thread([this] { loop_.run(); })) {}
  ~WorkThread() { end(); }
  WorkThread(const WorkThread&) = delete;
  WorkThread& operator=(const WorkThread&) = delete;
  void post(std::function<void()> work) { loop_.post(std::move(work)); }
  // Nothing runs that is posted later.
  void end() {
    loop_.stop();
    if (thread_.joinable()) thread_.join();
  }

 private:
  http::EventLoop loop_;
  std::thread thread_;
};

using SharedState = std::shared_ptr<const DecidedState>;

void set_place(const DecidedState& state, WaitAnswer& answer) {
  const std::string& job = answer.explanation.job;
  const auto found = std::find_if(state.queue.jobs.begin(), state.queue.jobs.end(),
                                  [&](const auto& each) { return each.request.name == job; });
  if (found == state.queue.jobs.end()) return;
  answer.position =
      1 + static_cast<int>(std::count_if(state.queue.jobs.begin(), found, [&](const auto& each) {
        return each.request.queue == found->request.queue;
      }));
  const auto& waiting = state.decision.waiting;
  const auto place = std::find_if(waiting.begin(), waiting.end(),
                                  [&](const auto& each) { return each.job == job; });
  answer.ahead = static_cast<int>(place - waiting.begin());
}

Result<WaitAnswer> explained_new(const DecidedState& from, const sched::JobRequest& request) {
  DecidedState state = from;
  state.snapshot.now = os::monotonic_now();
  state.queue.jobs.push_back({.request = request, .completed = {}});
  REGATTA_TRY(decision, sched::decide(state.snapshot, state.queue, state.policy));
  state.decision = std::move(decision);
  sched::apply_decision(state.decision, state.snapshot, state.queue);
  WaitAnswer answer{.revision = from.revision, .explanation = {}};
  REGATTA_TRY(explanation, sched::explain_wait(state.snapshot, state.queue, state.policy,
                                               state.decision, request.name));
  answer.explanation = std::move(explanation);
  set_place(state, answer);
  REGATTA_TRY_DO(
      sched::predict_wait(state.snapshot, state.queue, state.policy, answer.explanation));
  return answer;
}

}  // namespace

struct WaitExplainer::Impl {
  SharedState current() REGATTA_EXCLUDES(mutex) {
    MutexLock lock(mutex);
    return state;
  }

  // The state with a time that is not far from now.
  SharedState fresh() {
    SharedState given = current();
    if (given == nullptr) return nullptr;
    const Seconds now = os::monotonic_now();
    if (given != source || now - fresh_copy->snapshot.now > kAgeMax) {
      source = given;
      fresh_copy = given;
      answers.clear();
    }
    if (now - fresh_copy->snapshot.now <= kAgeMax) return fresh_copy;
    auto copy = std::make_shared<DecidedState>(*given);
    copy->snapshot.now = now;
    fresh_copy = std::move(copy);
    return fresh_copy;
  }

  Result<WaitAnswer> answer(const SharedState& from, const std::string& job) {
    const auto known = answers.find(job);
    if (known != answers.end()) return known->second;
    WaitAnswer made{.revision = from->revision, .explanation = {}};
    REGATTA_TRY(explanation, sched::explain_wait(from->snapshot, from->queue, from->policy,
                                                 from->decision, job));
    made.explanation = std::move(explanation);
    set_place(*from, made);
    return answers.emplace(job, std::move(made)).first->second;
  }

  void explain(const std::string& job, const std::function<void(Result<WaitAnswer>)>& handler) {
    const SharedState from = fresh();
    if (from == nullptr)
      return handler(Error{Code::kNotFound, "job " + job + ": no decision is there yet"});
    auto made = answer(from, job);
    handler(made);
    if (!made || made->explanation.start || made->explanation.prediction) return;
    if (waiting_forecasts >= kForecastsMax) return;
    ++waiting_forecasts;
    forecasts.post([this, from, handler, made = std::move(*made)]() mutable {
      --waiting_forecasts;
      const Status done =
          sched::predict_wait(from->snapshot, from->queue, from->policy, made.explanation);
      if (!done) return handler(done.error());
      handler(made);
      explanations.post([this, from, made] {
        if (from == fresh_copy) answers[made.explanation.job] = made;
      });
    });
  }

  Mutex mutex;
  SharedState state REGATTA_GUARDED_BY(mutex);
  // These belong to the thread of explanations.
  SharedState source;
  SharedState fresh_copy;
  std::map<std::string, WaitAnswer> answers;
  std::atomic<int> waiting_forecasts = 0;
  WorkThread explanations;
  WorkThread forecasts;
};

WaitExplainer::WaitExplainer() : impl_(std::make_unique<Impl>()) {}

// Each thread posts to the other, so both end before one is destroyed.
WaitExplainer::~WaitExplainer() {
  impl_->explanations.end();
  impl_->forecasts.end();
}

void WaitExplainer::set_state(std::shared_ptr<const DecidedState> state) {
  if (state == nullptr)
    impl_->explanations.post([impl = impl_.get()] {
      impl->source = impl->fresh_copy = nullptr;
      impl->answers.clear();
    });
  MutexLock lock(impl_->mutex);
  impl_->state.swap(state);  // the one of before is destroyed without the lock
}

void WaitExplainer::explain(const std::string& job,
                            std::function<void(Result<WaitAnswer>)> handler) {
  impl_->explanations.post(
      [impl = impl_.get(), job, handler = std::move(handler)] { impl->explain(job, handler); });
}

void WaitExplainer::explain_new(sched::JobRequest request,
                                std::function<void(Result<WaitAnswer>)> handler) {
  impl_->forecasts.post(
      [impl = impl_.get(), request = std::move(request), handler = std::move(handler)] {
        const SharedState from = impl->current();
        handler(from != nullptr
                    ? explained_new(*from, request)
                    : Result<WaitAnswer>(Error{Code::kNotFound, "no decision is there yet"}));
      });
}

void WaitExplainer::predict_first(
    int count, std::function<void(std::vector<sched::StartPrediction>, Seconds now)> handler) {
  impl_->forecasts.post([impl = impl_.get(), count, handler = std::move(handler)] {
    const SharedState from = impl->current();
    if (from == nullptr) return handler({}, Seconds{});
    std::vector<std::string> jobs;
    for (const sched::WaitingJob& waiting : from->decision.waiting)
      if (waiting.cause != sched::WaitCause::kNeverFits &&
          waiting.cause != sched::WaitCause::kDegraded && static_cast<int>(jobs.size()) < count)
        jobs.push_back(waiting.job);
    if (jobs.empty()) return handler({}, from->snapshot.now);
    const sched::StartForecastOptions options{
        .samples = sched::forecast_samples(from->snapshot, from->queue)};
    auto made = sched::predict_starts(from->snapshot, from->queue, from->policy, jobs, options);
    handler(made ? std::move(*made) : std::vector<sched::StartPrediction>(), from->snapshot.now);
  });
}

}  // namespace regatta::controller
