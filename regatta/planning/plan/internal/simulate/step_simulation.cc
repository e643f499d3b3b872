#include "regatta/planning/plan/internal/simulate/step_simulation.h"

#include <algorithm>
#include <cstddef>
#include <functional>
#include <limits>
#include <queue>
#include <utility>
#include <vector>

#include "regatta/base/core/ids.h"
#include "regatta/base/core/result.h"

namespace regatta::plan {
namespace {

// A moment at which a lockstep group ends its computation or an operation ends its latency.
struct Event {
  double time = 0;
  int sequence = 0;  // ties in the order of their making
  int group = -1;
  int operation = -1;

  bool operator>(const Event& other) const {
    return time != other.time ? time > other.time : sequence > other.sequence;
  }
};

class Engine {
 public:
  Engine(const StepProgram& program, const std::vector<double>& capacities)
      : program_(program),
        network_(capacities),
        next_action_(program.groups.size(), 0),
        posts_(program.operations.size(), 0),
        ended_(program.operations.size(), false),
        waiting_cells_(program.operations.size()),
        wait_start_(program.groups.size(), 0),
        queues_(static_cast<std::size_t>(program.channels)),
        queue_next_(static_cast<std::size_t>(program.channels), 0) {
    result_.groups.resize(program.groups.size());
    result_.operations.resize(program.operations.size());
    for (std::size_t i = 0; i < program.operations.size(); ++i) {
      const int channel = program.operations[i].channel;
      if (channel >= 0) at(queues_, channel).push_back(static_cast<int>(i));
    }
  }

  StepSimulation run() {
    for (std::size_t group = 0; group < program_.groups.size(); ++group)
      go_on(static_cast<int>(group));
    while (!events_.empty() || !network_.idle())
      advance();
    for (std::size_t group = 0; group < program_.groups.size(); ++group)
      REGATTA_CHECK(next_action_[group] == program_.groups[group].size());
    result_.end = 0;
    for (const auto& spans : result_.groups)
      result_.end = std::max(result_.end, spans.empty() ? 0.0 : spans.back().end);
    return std::move(result_);
  }

 private:
  void advance() {
    const double timed =
        events_.empty() ? std::numeric_limits<double>::infinity() : events_.top().time - now_;
    const double fluid = network_.next_end();
    const double step = std::max(0.0, std::min(timed, fluid));
    const std::vector<int> ended = network_.advance(step);
    now_ = fluid < timed ? now_ + step : events_.top().time;
    for (const int operation : ended)
      end_operation(operation);
    while (!events_.empty() && events_.top().time <= now_) {
      const Event event = events_.top();
      events_.pop();
      if (event.group >= 0)
        go_on(event.group);
      else
        end_latency(event.operation);
    }
  }

  // Runs actions of `group` until it computes, waits or ends.
  void go_on(int group) {
    const std::vector<StepAction>& actions = at(program_.groups, group);
    std::size_t& next = at(next_action_, group);
    while (next < actions.size()) {
      const StepAction& action = actions[next];
      if (action.kind == StepActionKind::kPost) {
        post(action.operation);
      } else if (action.kind == StepActionKind::kCompute) {
        add_span(group, action, action.phase, now_, now_ + action.seconds);
        ++next;
        if (action.seconds > 0) {
          events_.push({now_ + action.seconds, sequence_++, group, -1});
          return;
        }
        continue;
      } else if (!at(ended_, action.operation)) {
        at(wait_start_, group) = now_;
        at(waiting_cells_, action.operation).push_back(group);
        return;
      }
      ++next;
    }
  }

  void add_span(int group, const StepAction& action, workload::Phase phase, double start,
                double end) {
    if (end > start)
      at(result_.groups, group).push_back({phase, action.micro_batch, action.layer, start, end});
  }

  void post(int operation) {
    const auto index = static_cast<std::size_t>(operation);
    REGATTA_CHECK(posts_[index] < program_.operations[index].members);
    if (++posts_[index] < program_.operations[index].members) return;
    result_.operations[index].posted = now_;
    const int channel = program_.operations[index].channel;
    if (channel < 0)
      begin(operation);
    else
      serve(channel);
  }

  // Begins the next operation of the channel when it is posted and nothing is before it.
  void serve(int channel) {
    const std::vector<int>& queue = at(queues_, channel);
    const std::size_t next = at(queue_next_, channel);
    if (next >= queue.size()) return;
    const auto index = static_cast<std::size_t>(queue[next]);
    if (posts_[index] < program_.operations[index].members) return;
    if (next > 0 && !at(ended_, queue[next - 1])) return;
    ++at(queue_next_, channel);
    begin(queue[next]);
  }

  void begin(int operation) {
    const CommOperation& one = at(program_.operations, operation);
    at(result_.operations, operation).started = now_;
    events_.push({now_ + one.latency, sequence_++, -1, operation});
  }

  void end_latency(int operation) {
    const int transfer = at(program_.operations, operation).transfer;
    if (transfer < 0)
      end_operation(operation);
    else
      network_.start(&at(program_.transfers, transfer), operation);
  }

  void end_operation(int operation) {
    const auto index = static_cast<std::size_t>(operation);
    ended_[index] = true;
    result_.operations[index].ended = now_;
    for (const int group : std::exchange(waiting_cells_[index], {}))
      wake(group, index);
    const int channel = program_.operations[index].channel;
    if (channel >= 0) serve(channel);
  }

  double first_byte(std::size_t operation) const {
    return result_.operations[operation].started + program_.operations[operation].latency;
  }

  void wake(int group, std::size_t operation) {
    std::size_t& next = at(next_action_, group);
    const StepAction& action = at(program_.groups, group)[next];
    const double start = at(wait_start_, group);
    double cut = start;
    if (action.phase == workload::Phase::kPpComm)
      cut = std::clamp(first_byte(operation), start, now_);
    add_span(group, action, workload::Phase::kBubble, start, cut);
    add_span(group, action, action.phase, cut, now_);
    ++next;
    go_on(group);
  }

  const StepProgram& program_;
  FluidNetwork network_;
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
  std::vector<std::size_t> next_action_;         // by group
  std::vector<int> posts_;                       // by operation
  std::vector<bool> ended_;                      // by operation
  std::vector<std::vector<int>> waiting_cells_;  // by operation
  std::vector<double> wait_start_;               // by group
  std::vector<std::vector<int>> queues_;         // operations by channel
  std::vector<std::size_t> queue_next_;
  StepSimulation result_;
  double now_ = 0;
  int sequence_ = 0;
};

}  // namespace

StepSimulation simulate_step(const StepProgram& program, const std::vector<double>& capacities) {
  return Engine(program, capacities).run();
}

}  // namespace regatta::plan
