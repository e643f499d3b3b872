#include "regatta/planning/plan/internal/simulate.h"

#include <algorithm>
#include <cstddef>
#include <functional>
#include <limits>
#include <queue>
#include <utility>
#include <vector>

#include "regatta/base/core/check.h"

namespace regatta::plan {
namespace {

// A moment at which a cell ends its computation or an operation ends its latency.
struct Event {
  double time = 0;
  int sequence = 0;  // ties in the order of their making
  int cell = -1;
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
        next_action_(program.cells.size(), 0),
        posts_(program.operations.size(), 0),
        ended_(program.operations.size(), false),
        waiting_cells_(program.operations.size()),
        wait_start_(program.cells.size(), 0),
        queues_(static_cast<std::size_t>(program.channels)),
        queue_next_(static_cast<std::size_t>(program.channels), 0) {
    result_.cells.resize(program.cells.size());
    result_.operations.resize(program.operations.size());
    for (std::size_t i = 0; i < program.operations.size(); ++i) {
      const int channel = program.operations[i].channel;
      if (channel >= 0) queues_[static_cast<std::size_t>(channel)].push_back(static_cast<int>(i));
    }
  }

  Simulation run() {
    for (std::size_t cell = 0; cell < program_.cells.size(); ++cell)
      go_on(static_cast<int>(cell));
    while (!events_.empty() || !network_.idle())
      advance();
    for (std::size_t cell = 0; cell < program_.cells.size(); ++cell)
      REGATTA_CHECK(next_action_[cell] == program_.cells[cell].size());
    result_.end = 0;
    for (const auto& spans : result_.cells)
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
      if (event.cell >= 0)
        go_on(event.cell);
      else
        end_latency(event.operation);
    }
  }

  // Runs actions of `cell` until it computes, waits or ends.
  void go_on(int cell) {
    const std::vector<Action>& actions = program_.cells[static_cast<std::size_t>(cell)];
    std::size_t& next = next_action_[static_cast<std::size_t>(cell)];
    while (next < actions.size()) {
      const Action& action = actions[next];
      if (action.kind == ActionKind::kPost) {
        post(action.operation);
      } else if (action.kind == ActionKind::kCompute) {
        add_span(cell, action, action.phase, now_, now_ + action.seconds);
        ++next;
        if (action.seconds > 0) {
          events_.push({now_ + action.seconds, sequence_++, cell, -1});
          return;
        }
        continue;
      } else if (!ended_[static_cast<std::size_t>(action.operation)]) {
        wait_start_[static_cast<std::size_t>(cell)] = now_;
        waiting_cells_[static_cast<std::size_t>(action.operation)].push_back(cell);
        return;
      }
      ++next;
    }
  }

  void add_span(int cell, const Action& action, workload::Phase phase, double start, double end) {
    if (end > start)
      result_.cells[static_cast<std::size_t>(cell)].push_back(
          {phase, action.micro_batch, action.layer, start, end});
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
    const std::vector<int>& queue = queues_[static_cast<std::size_t>(channel)];
    const std::size_t next = queue_next_[static_cast<std::size_t>(channel)];
    if (next >= queue.size()) return;
    const auto index = static_cast<std::size_t>(queue[next]);
    if (posts_[index] < program_.operations[index].members) return;
    if (next > 0 && !ended_[static_cast<std::size_t>(queue[next - 1])]) return;
    ++queue_next_[static_cast<std::size_t>(channel)];
    begin(queue[next]);
  }

  void begin(int operation) {
    const Operation& one = program_.operations[static_cast<std::size_t>(operation)];
    result_.operations[static_cast<std::size_t>(operation)].started = now_;
    events_.push({now_ + one.latency, sequence_++, -1, operation});
  }

  void end_latency(int operation) {
    const int transfer = program_.operations[static_cast<std::size_t>(operation)].transfer;
    if (transfer < 0)
      end_operation(operation);
    else
      network_.start(&program_.transfers[static_cast<std::size_t>(transfer)], operation);
  }

  void end_operation(int operation) {
    const auto index = static_cast<std::size_t>(operation);
    ended_[index] = true;
    result_.operations[index].ended = now_;
    for (const int cell : std::exchange(waiting_cells_[index], {}))
      wake(cell, index);
    const int channel = program_.operations[index].channel;
    if (channel >= 0) serve(channel);
  }

  double first_byte(std::size_t operation) const {
    return result_.operations[operation].started + program_.operations[operation].latency;
  }

  void wake(int cell, std::size_t operation) {
    std::size_t& next = next_action_[static_cast<std::size_t>(cell)];
    const Action& action = program_.cells[static_cast<std::size_t>(cell)][next];
    const double start = wait_start_[static_cast<std::size_t>(cell)];
    double cut = start;
    if (action.phase == workload::Phase::kPpComm)
      cut = std::clamp(first_byte(operation), start, now_);
    add_span(cell, action, workload::Phase::kBubble, start, cut);
    add_span(cell, action, action.phase, cut, now_);
    ++next;
    go_on(cell);
  }

  const StepProgram& program_;
  FluidNetwork network_;
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
  std::vector<std::size_t> next_action_;         // by cell
  std::vector<int> posts_;                       // by operation
  std::vector<bool> ended_;                      // by operation
  std::vector<std::vector<int>> waiting_cells_;  // by operation
  std::vector<double> wait_start_;               // by cell
  std::vector<std::vector<int>> queues_;         // operations by channel
  std::vector<std::size_t> queue_next_;
  Simulation result_;
  double now_ = 0;
  int sequence_ = 0;
};

}  // namespace

Simulation simulate(const StepProgram& program, const std::vector<double>& capacities) {
  return Engine(program, capacities).run();
}

}  // namespace regatta::plan
