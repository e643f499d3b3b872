// cli/main.cc: the program `regatta`: parses the command line and hands it to one command.
// Exit status: 0 done, 1 the work failed, 2 the input is wrong.

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <exception>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "regatta/cli/lab_command.h"
#include "regatta/cli/measure_command.h"
#include "regatta/cli/plan_command.h"
#include "regatta/cli/run_command.h"
#include "regatta/cli/topo_command.h"
#include "regatta/core/text.h"

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
  regatta::cli::add_topo_command(app, exit_status);
  regatta::cli::add_measure_command(app, exit_status);
  regatta::cli::add_plan_command(app, exit_status);
  regatta::cli::add_run_command(app, exit_status);
  regatta::cli::add_lab_command(app, exit_status);
}

// Prints the help or version that was asked for, or one sentence about what is wrong.
int report_parse_end(const CLI::App& app, const CLI::ParseError& end) {
  if (end.get_exit_code() == 0) return app.exit(end);
  const CLI::App* place = &app;
  std::string words = "regatta";
  while (!place->get_subcommands().empty()) {
    place = place->get_subcommands().front();
    words += " " + place->get_name();
  }
  std::string message = end.what();
  if (message.size() > 1 && std::islower(static_cast<unsigned char>(message[1])) != 0)
    message[0] = static_cast<char>(std::tolower(static_cast<unsigned char>(message[0])));
  std::fprintf(stderr, "regatta: %s; see %s --help\n", message.c_str(), words.c_str());
  return 2;
}

// Tells a mistyped command from a missing one, and offers the nearest.
bool is_unknown_command(const CLI::App& app, const std::string& word) {
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands(nullptr))
    names.push_back(command->get_name());
  if (word.empty() || word[0] == '-' || std::find(names.begin(), names.end(), word) != names.end())
    return false;
  const std::string nearest = regatta::nearest_word(word, names);
  const std::string remedy = nearest.empty() ? "choose one of " + regatta::join(names, ", ")
                                             : "did you mean '" + nearest + "'?";
  std::fprintf(stderr, "regatta: no command is called '%s'; %s\n", word.c_str(), remedy.c_str());
  return true;
}

int run(int argc, char** argv) {
  CLI::App app(kDescription, "regatta");
  app.set_version_flag("--version", std::string("regatta ") + REGATTA_VERSION);
  app.footer(kFooter);
  app.require_subcommand(1);
  int exit_status = 0;
  add_commands(app, exit_status);
  if (argc > 1 && is_unknown_command(app, argv[1])) return 2;
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
