#include "regatta/network/simulate/internal/message_reporter.h"

#include "regatta/network/simulate/internal/bundles.h"

namespace regatta::simulate {
namespace {

constexpr std::size_t kBetweenProgress = 1U << 16U;

}  // namespace

MessageReporter::MessageReporter(const ScenarioWorkload& workload, const FlowProblem& problem,
                                 const SimulateOptions& options)
    : workload_(workload), options_(options) {
  for (const fabric::FlowGraph::Flow& flow : workload.traffic.flows())
    messages_ += workload.messages_of(flow.path);
  if (problem.parts.empty()) return;
  left_.resize(workload.traffic.flows().size());
  flow_of_.resize(problem.parts.back());
  for (std::uint32_t flow = 0; flow < left_.size(); ++flow) {
    left_[flow] = problem.parts[flow + 1] - problem.parts[flow];
    for (std::uint32_t part = problem.parts[flow]; part < problem.parts[flow + 1]; ++part)
      flow_of_[part] = flow;
  }
}

template <typename Use>
void MessageReporter::for_each_message_of(std::uint32_t path, Use&& use) const {
  if (is_bundle(path))
    for_each_message(workload_, workload_.bundles[path & ~kBundleBits], use);
  else
    use(workload_.ranks_of[path].from, workload_.ranks_of[path].to);
}

void MessageReporter::report(std::uint32_t part, const fabric::FlowTimes& times) {
  std::uint32_t flow = part;
  if (!left_.empty()) {
    if (part >= flow_of_.size()) return;  // a join
    flow = flow_of_[part];
    if (--left_[flow] != 0) return;
  }
  const fabric::FlowGraph::Flow& one = workload_.traffic.flows()[flow];
  const std::uint64_t messages = workload_.messages_of(one.path);
  if (messages == 0) return;
  const std::size_t before = sent_;
  sent_ += messages;
  if (options_.on_progress && before / kBetweenProgress != sent_ / kBetweenProgress)
    options_.on_progress(times.sent, sent_, messages_);
  if (!options_.on_message) return;
  for_each_message_of(one.path, [&](std::uint32_t from, std::uint32_t to) {
    options_.on_message({.operation = workload_.operation_of(flow),
                         .from = from,
                         .to = to,
                         .bytes = one.bytes,
                         .start = times.start,
                         .arrived = times.arrived});
  });
}

}  // namespace regatta::simulate
