// regatta-test-worker: a worker without a model, for the tests of the agent and the session. Joins,
// sends steps, and fails in the way that its spec asks for:
//   {"steps": 3, "step_s": 0.01, "fail_rank": 1, "fail": "exit"|"error"|"abort"|"hang"|"silent"}

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <string>

#include <fmt/core.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include "regatta/base/os/clock.h"
#include "regatta/base/rpc/worker_channel.h"

namespace {

using regatta::Code;
using regatta::Error;
using regatta::Seconds;
using regatta::Status;

Status fail_as(const std::string& how) {
  if (how == "exit") {
    std::fprintf(stderr, "no such file\n");
    std::exit(7);
  }
  if (how == "error") return Error{Code::kInvalidInput, "cannot read the data"};
  if (how == "peer") return Error{Code::kUnavailable, "connection to rank 0 lost"};
  if (how == "abort") std::abort();
  if (how == "silent") std::exit(0);
  if (how == "hang") {
    std::signal(SIGTERM, SIG_IGN);
    for (;;)
      regatta::os::sleep_for(Seconds{1.0});
  }
  return {};
}

Status work(regatta::rpc::WorkerChannel& channel) {
  REGATTA_TRY(spec, channel.receive_spec());
  const int rank = spec.value("rank", 0);
  REGATTA_TRY(peers, channel.exchange(fmt::format("endpoint-{}", rank)));
  const int steps = spec.value("steps", 3);
  for (int step = 0; step < steps; ++step) {
    regatta::os::sleep_for(Seconds{spec.value("step_s", 0.01)});
    REGATTA_TRY_DO(channel.emit({{"event", "step"},
                                 {"step", step},
                                 {"peers", peers},
                                 {"ports", channel.planned_ports().to_rank},
                                 {"ways", channel.planned_ports().ways},
                                 {"pid", ::getpid()},
                                 {"spec", spec}}));
    if (spec.value("fail_rank", -1) == rank) REGATTA_TRY_DO(fail_as(spec.value("fail", "")));
  }
  return channel.emit({{"event", "done"}});
}

}  // namespace

int main() {
  auto channel = regatta::rpc::WorkerChannel::open();
  if (!channel) return 1;
  const Status status = work(*channel);
  if (status) return 0;
  static_cast<void>(channel->emit_error(status.error()));
  return 1;
}
