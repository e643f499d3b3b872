#include "regatta/app/cli/internal/probe_lab.h"

#include <csignal>

#include <sys/mman.h>
#include <unistd.h>

#include "regatta/base/os/clock.h"
#include "regatta/base/os/process.h"
#include "regatta/base/os/unique_fd.h"
#include "regatta/network/probe/handshake.h"

namespace regatta::cli {
namespace {

constexpr Seconds kCarriers{0.3};

// A file without a name that holds `text`.
Result<os::UniqueFd> file_of(const std::string& text) {
  os::UniqueFd fd(::memfd_create("plan of probes", MFD_CLOEXEC));
  if (!fd) return os::errno_error("plan of probes");
  for (std::size_t done = 0; done < text.size();) {
    const ssize_t count = ::write(fd.get(), text.data() + done, text.size() - done);
    if (count <= 0) return os::errno_error("plan of probes");
    done += static_cast<std::size_t>(count);
  }
  return fd;
}

}  // namespace

LabProbers::~LabProbers() {
  for (const Prober& one : probers_)
    if (!one.has_ended) static_cast<void>(os::send_signal(one.pid, SIGTERM).has_value());
  // One that is stopped does not see that.
  for (const Prober& one : probers_)
    if (!one.has_ended) static_cast<void>(os::terminate(one.pid, Seconds{0.5}).has_value());
}

Status LabProbers::start(const lab::LabInfo& lab, const topo::Graph& graph,
                         const probe::Matrix& matrix, const std::string& collector,
                         const std::string& period) {
  REGATTA_TRY(folder, os::executable_folder());
  const std::uint64_t number = plan_number(graph, matrix);
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    if (graph.nodes[i].kind != topo::NodeKind::kServer) continue;
    const auto part = part_of(graph, matrix, NodeId{static_cast<int>(i)});
    REGATTA_TRY(plan, file_of(plan_text(graph, matrix, part, number)));
    const std::string& server = graph.nodes[i].name;
    REGATTA_TRY(pid, lab::spawn(lab, server,
                                {folder + "/regatta-prober", "--plan", "-", "--collector",
                                 collector, "--period", period},
                                {.environment = {}, .stdin_fd = plan.get()}));
    probers_.push_back({.pid = pid, .server = server});
  }
  return {};
}

std::vector<std::string> LabProbers::ended() {
  std::vector<std::string> names;
  for (Prober& one : probers_) {
    if (!one.has_ended) {
      const auto state = os::try_wait(one.pid);
      one.has_ended = !state || state->has_value();
    }
    if (one.has_ended) names.push_back(one.server);
  }
  return names;
}

Status LabCarriers::sample(const lab::LabInfo& lab, probe::Collector& collector) {
  if (os::monotonic_now() < next_) return {};
  next_ = os::monotonic_now() + kCarriers;
  REGATTA_TRY(states, lab::link_states(lab));
  up_.resize(states.size(), true);
  for (std::size_t i = 0; i < states.size(); ++i) {
    if (states[i].up == up_[i]) continue;
    up_[i] = states[i].up;
    collector.add(diag::CarrierEvent{.link = LinkId{static_cast<int>(i)}, .up = states[i].up});
  }
  return {};
}

}  // namespace regatta::cli
