// regatta-agent: runs the workers of one server for a session. In a lab `regatta run` starts it; on
// real servers an operator does. Exit status: 0 done, 1 the work failed, 2 the input is wrong.

#include <atomic>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>

#include <CLI/CLI.hpp>
#include <fmt/core.h>

#include "regatta/base/core/text.h"
#include "regatta/runtime/agent/internal/agent_service.h"

namespace {

std::atomic<bool> g_stop = false;
static_assert(std::atomic<bool>::is_always_lock_free, "set from a signal handler");

int report(const regatta::Error& error) {
  std::fprintf(stderr, "regatta-agent: %s\n", error.message.c_str());
  return regatta::exit_status(error);
}

// One sentence for what `error` says of the command line.
regatta::Error explained(const CLI::App& app, const CLI::ParseError& error) {
  std::string problem = error.what();
  const auto unknown = app.remaining(true);
  if (!unknown.empty()) {
    problem = fmt::format("there is no option '{}'", regatta::printable(unknown.front(), 60));
  } else if (error.get_exit_code() == static_cast<int>(CLI::ExitCodes::RequiredError)) {
    problem = "--listen is missing";
  }
  return {regatta::Code::kInvalidInput, problem + "; see regatta-agent --help"};
}

int run(int argc, char** argv) {
  CLI::App app("Runs the workers of one server for `regatta run` and `regatta measure`.",
               "regatta-agent");
  app.footer(
      "Example, on each server whose address the cluster file gives:\n"
      "  REGATTA_AGENT_TOKEN=secret regatta-agent --listen 0.0.0.0:7700");
  regatta::agent::ServeOptions options;
  app.add_option("--listen", options.listen, "unix:PATH or host:port")->required();
  app.add_flag("--exit-with-session", options.exit_with_session,
               "end with the first session (inside a lab)");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& end) {
    if (end.get_exit_code() == 0) return app.exit(end);  // --help
    return report(explained(app, end));
  }
  // By the environment: a command line can be read by every user of the server.
  if (const char* token = std::getenv("REGATTA_AGENT_TOKEN")) options.token = token;
  ::unsetenv("REGATTA_AGENT_TOKEN");  // no business of the workers
  std::signal(SIGTERM, [](int) { g_stop = true; });
  // Ctrl-C reaches the session, which ends its own agents in order.
  std::signal(
      SIGINT, options.exit_with_session ? SIG_IGN : [](int) { g_stop = true; });
  std::signal(SIGPIPE, SIG_IGN);
  const auto status = regatta::agent::serve(options, g_stop);
  return status ? 0 : report(status.error());
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "regatta-agent: bug: %s; please report it\n", error.what());
    return 1;
  }
}
