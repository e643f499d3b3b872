// cli/main.cc: the program `regatta`: parses the command line and hands it to one command.
// Exit status: 0 done, 1 the work failed, 2 the input is wrong.

#include <cstdio>
#include <exception>
#include <string>

#include <CLI/CLI.hpp>

namespace {

constexpr const char* kDescription =
    "Regatta takes a GPU cluster from its hardware to its jobs: it knows the servers and the\n"
    "network, plans how to train a large model on them, runs the training and shows prediction\n"
    "beside measurement.";
constexpr const char* kFooter =
    "Example:\n"
    "  regatta run examples/job.yaml --cluster examples/cluster.yaml\n"
    "Each command explains itself: regatta COMMAND --help";

// Adds every command to `app`; the one that runs sets `exit_status`.
void add_commands(CLI::App& app, int& exit_status) {
  static_cast<void>(app);
  static_cast<void>(exit_status);
}

// Prints the help or version that was asked for, or one sentence about what is wrong.
int report_parse_end(const CLI::App& app, const CLI::ParseError& end) {
  if (end.get_exit_code() == 0) return app.exit(end);
  const CLI::App* place = &app;
  while (!place->get_subcommands().empty())
    place = place->get_subcommands().front();
  std::fprintf(stderr, "regatta: %s; see %s --help\n", end.what(),
               place == &app ? "regatta" : ("regatta " + place->get_name()).c_str());
  return 2;
}

int run(int argc, char** argv) {
  CLI::App app(kDescription, "regatta");
  app.set_version_flag("--version", std::string("regatta ") + REGATTA_VERSION);
  app.footer(kFooter);
  app.require_subcommand(1);
  int exit_status = 0;
  add_commands(app, exit_status);
  if (argc == 1) {
    std::fputs(app.help().c_str(), stdout);
    return 2;
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& end) {
    return report_parse_end(app, end);
  }
  return exit_status;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "regatta: bug: %s; please report it\n", error.what());
    return 1;
  }
}
