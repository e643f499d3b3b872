// `regatta rates serve`: the part of one server in the measurement of rates.
#include <atomic>
#include <memory>
#include <string>

#include <fmt/core.h>

#include "regatta/app/cli/internal/arguments.h"
#include "regatta/app/cli/internal/job_file.h"
#include "regatta/app/cli/internal/rates_command.h"
#include "regatta/app/cli/internal/stop_signal.h"
#include "regatta/network/link_rates/rate_session.h"
#include "regatta/network/link_rates/train_agent.h"
#include "regatta/network/probe/collector.h"
#include "regatta/network/probe/handshake.h"

namespace regatta::cli {
namespace {

struct ServeOptions {
  std::string server;
  std::string controller;
};

Status run(const ServeOptions& options) {
  const Status place = probe::check_collector(options.controller);
  if (!place) return Error{place.error().code, "--controller " + place.error().message};
  REGATTA_TRY(token, probe::token_of_environment());
  std::atomic<probe::CollectorConnection*> reports_to = nullptr;
  REGATTA_TRY(agent, link_rates::TrainAgent::open([&](const std::string& line) {
                if (auto* const to = reports_to.load()) to->send(line);
              }));
  REGATTA_TRY(
      connection,
      probe::CollectorConnection::open(
          {.collector = options.controller,
           .handshake = {.server = options.server,
                         .period = link_rates::kAgentPeriod,
                         .plan = link_rates::kAgentPlan,
                         .clock = {},
                         .token = token},
           .again = Seconds{1},
           .note = [](const std::string& text) { fmt::print(stderr, "regatta: {}\n", text); },
           .on_line = [&](std::string_view line) { return agent.order(line); }}));
  reports_to = &connection;
  return agent.run(watch_stop_signals());
}

}  // namespace

void add_rates_serve(CLI::App& rates, int& exit_status) {
  const auto options = std::make_shared<ServeOptions>();
  CLI::App* command = add_command(
      rates, "serve", "Send and receive the trains of one real server, until Ctrl-C",
      "regatta rates serve --server s3 --controller head-1:27899\nSo on each server. Where the "
      "controller has a token in REGATTA_PROBE_TOKEN, this needs the same.",
      [=, &exit_status] {
        const Status status = run(*options);
        exit_status = status ? 0 : report_error(status.error());
      });
  command->add_option("--server", options->server, "Which server of the cluster file this is")
      ->required()
      ->type_name("NAME")
      ->check(not_empty());
  command
      ->add_option("--controller", options->controller,
                   "Where regatta rates probe listens: HOST:PORT or unix:PATH")
      ->required()
      ->type_name("PLACE")
      ->check(not_empty());
}

}  // namespace regatta::cli
