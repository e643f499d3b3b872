#include "regatta/app/cli/internal/platform_why.h"

#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "regatta/app/cli/internal/arguments.h"
#include "regatta/app/cli/internal/job_file.h"
#include "regatta/app/cli/internal/platform_client.h"
#include "regatta/base/core/text.h"

namespace regatta::cli {
namespace {

struct WhyOptions {
  ConnectionOptions connection;
  std::string job;
  bool json = false;
};

Result<int> explain(const WhyOptions& options) {
  REGATTA_TRY(client, PlatformClient::open(options.connection));
  REGATTA_TRY(why, client.call_again({.target = "/v1/jobs/" + url_text(options.job) + "/why"}));
  if (options.json)
    fmt::print("{}\n", why.dump());
  else
    print_why(why);
  return 0;
}

}  // namespace

void print_why(const nlohmann::json& why) {
  const nlohmann::json start = why.value("start", nlohmann::json::object());
  fmt::print("{}: {}\n", printable(text_in(why, "job"), 80),
             printable(text_in(why, "reason"), 500));
  if (const int position = why.value("position", 0); position > 0)
    fmt::print("place {} of its queue; {} considered before it\n", position,
               pluralized(static_cast<std::size_t>(why.value("ahead", 0)), "job"));
  std::vector<std::vector<std::string>> rows;
  for (const nlohmann::json& item : why.value("blocking", nlohmann::json::array()))
    rows.push_back({"  " + text_in(item, "kind"), printable(text_in(item, "name"), 60),
                    printable(text_in(item, "text"), 200)});
  if (!rows.empty()) fmt::print("in its way:\n{}", format_table(rows));
  fmt::print("start: {}\n", printable(text_in(start, "text"), 500));
  if (start.value("known", false) && start.contains("late_ms"))
    fmt::print("likely at {}, between {} and {}\n", time_text(start.value("likely_ms", 0LL)),
               time_text(start.value("early_ms", 0LL)), time_text(start.value("late_ms", 0LL)));
}

void add_platform_why_command(CLI::App& app, int& exit_status) {
  const auto options = std::make_shared<WhyOptions>();
  CLI::App* why = add_command(app, "why", "Say why a job waits, behind whom, and when it starts",
                              "regatta why hello-2", [=, &exit_status] {
                                const Result<int> done = explain(*options);
                                exit_status = done ? *done : report_error(done.error());
                              });
  why->add_option("JOB", options->job, "Handle or number of the job")
      ->required()
      ->check(not_empty());
  why->add_flag("--json", options->json, "Print the answer of the API");
  add_connection_options(*why, options->connection);
}

}  // namespace regatta::cli
