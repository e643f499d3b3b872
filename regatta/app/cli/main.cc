// cli/main.cc: the program `regatta`: parses the command line and hands it to one command.
// Exit status: 0 done, 1 the work failed, 2 the input is wrong.

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <exception>
#include <new>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>

#include "regatta/app/cli/internal/arguments.h"
#include "regatta/app/cli/internal/bench_command.h"
#include "regatta/app/cli/internal/coll_command.h"
#include "regatta/app/cli/internal/completion.h"
#include "regatta/app/cli/internal/fabric_command.h"
#include "regatta/app/cli/internal/gpu_command.h"
#include "regatta/app/cli/internal/heal_command.h"
#include "regatta/app/cli/internal/help.h"
#include "regatta/app/cli/internal/job_file.h"
#include "regatta/app/cli/internal/lab_command.h"
#include "regatta/app/cli/internal/measure_command.h"
#include "regatta/app/cli/internal/plan_command.h"
#include "regatta/app/cli/internal/platform_access.h"
#include "regatta/app/cli/internal/platform_audit.h"
#include "regatta/app/cli/internal/platform_backup.h"
#include "regatta/app/cli/internal/platform_cluster.h"
#include "regatta/app/cli/internal/platform_jobs.h"
#include "regatta/app/cli/internal/platform_monitoring.h"
#include "regatta/app/cli/internal/platform_why.h"
#include "regatta/app/cli/internal/probe_command.h"
#include "regatta/app/cli/internal/rates_command.h"
#include "regatta/app/cli/internal/run_command.h"
#include "regatta/app/cli/internal/sched_command.h"
#include "regatta/app/cli/internal/topo_command.h"
#include "regatta/app/cli/internal/traffic_command.h"
#include "regatta/app/cli/internal/up_command.h"
#include "regatta/base/core/result.h"
#include "regatta/base/os/unique_fd.h"

namespace {

constexpr const char* kDescription =
    "Regatta plans, runs and watches training jobs on clusters: it describes the servers and "
    "the\nnetwork, searches the fastest parallel plan, trains, and shows prediction beside "
    "measurement.";
constexpr const char* kFooter =
    "Example:\n"
    "  regatta run examples/job.yaml --cluster examples/cluster.yaml\n"
    "Help on a command: regatta help COMMAND";

// Adds every command to `app`; the one that runs sets `exit_status`.
void add_commands(CLI::App& app, int& exit_status) {
  regatta::cli::add_topo_command(app, exit_status);
  regatta::cli::add_measure_command(app, exit_status);
  regatta::cli::add_plan_command(app, exit_status);
  regatta::cli::add_run_command(app, exit_status);
  regatta::cli::add_lab_command(app, exit_status);
  regatta::cli::add_heal_command(app, exit_status);
  regatta::cli::add_probe_command(app, exit_status);
  regatta::cli::add_rates_command(app, exit_status);
  regatta::cli::add_bench_command(app, exit_status);
  regatta::cli::add_coll_command(app, exit_status);
  regatta::cli::add_fabric_command(app, exit_status);
  regatta::cli::add_traffic_command(app, exit_status);
  regatta::cli::add_gpu_command(app, exit_status);
  regatta::cli::add_sched_command(app, exit_status);
  regatta::cli::add_up_commands(app, exit_status);
  regatta::cli::add_platform_job_commands(app, exit_status);
  regatta::cli::add_platform_why_command(app, exit_status);
  regatta::cli::add_platform_cluster_commands(app, exit_status);
  regatta::cli::add_platform_monitoring_commands(app, exit_status);
  regatta::cli::add_platform_access_commands(app, exit_status);
  regatta::cli::add_platform_backup_commands(app, exit_status);
  regatta::cli::add_completion_command(app, exit_status);
  regatta::cli::add_platform_audit_command(app, exit_status);
}

int run(int argc, char** argv) {
  CLI::App app(kDescription, "regatta");
  app.set_version_flag("--version", std::string("regatta ") + REGATTA_VERSION,
                       "Print the version and exit");
  app.set_help_flag("-h,--help", "Print this and exit");
  app.footer(kFooter);
  app.formatter(regatta::cli::help_formatter());
  app.require_subcommand(1);
  int exit_status = 0;
  add_commands(app, exit_status);
  if (argc == 1) {
    std::fputs(app.help().c_str(), stderr);
    return 2;
  }
  if (argv[1] == regatta::cli::kCompleteWord) {
    for (const std::string& word : regatta::cli::complete_words(app, {argv + 2, argv + argc}))
      std::printf("%s\n", word.c_str());
    return 0;
  }
  std::vector<std::string> words = regatta::cli::with_help_words({argv + 1, argv + argc});
  if (const auto known = regatta::cli::check_words(app, words); !known)
    return regatta::cli::report_error(known.error());
  try {
    std::ranges::reverse(words);  // the library takes the last word first
    app.parse(std::move(words));
  } catch (const CLI::ParseError& end) {
    if (end.get_exit_code() == 0) return app.exit(end);  // --help, --version
    return regatta::cli::report_error(
        {regatta::Code::kInvalidInput, regatta::cli::explain(app, end)});
  }
  return exit_status;
}

// Printed text may still wait in the process: only now is it known whether it arrived.
// `number`: why not, where that is known.
int end_output(int status, int number = 0) {
  errno = 0;
  const bool is_written = std::fflush(stdout) == 0 && std::ferror(stdout) == 0;
  if (is_written) return status;
  if (errno != 0) number = errno;
  const std::string reason = number != 0 ? regatta::os::errno_text(number) : "it cannot be written";
  std::fprintf(stderr, "regatta: standard output: %s; what was printed is not complete\n",
               reason.c_str());
  return status == 0 ? 1 : status;
}

}  // namespace

int main(int argc, char** argv) {
  // A file that may not grow is reported as an error, and its begun part is removed. A handler,
  // unlike SIG_IGN, does not pass on to programs that this one starts.
  std::signal(SIGXFSZ, [](int) {});
  try {
    return end_output(run(argc, argv));
  } catch (const std::system_error& error) {
    // The library that prints throws where a large text meets a full device.
    if (std::ferror(stdout) != 0) return end_output(1, error.code().value());
    std::fprintf(stderr, "regatta: bug: %s; please report it\n", error.what());
    return 1;
  } catch (const std::bad_alloc&) {
    std::fputs(
        "regatta: no memory is left for this; ask for less at once, or take a machine with more\n",
        stderr);
    return 1;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "regatta: bug: %s; please report it\n", error.what());
    return 1;
  }
}
