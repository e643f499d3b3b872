#include "regatta/app/cli/internal/platform_monitoring.h"

#include <cstdio>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "regatta/app/cli/internal/arguments.h"
#include "regatta/app/cli/internal/cluster_file.h"
#include "regatta/app/cli/internal/job_file.h"
#include "regatta/app/cli/internal/platform_client.h"
#include "regatta/base/core/text.h"
#include "regatta/base/core/yaml_map.h"
#include "regatta/base/os/clock.h"

namespace regatta::cli {
namespace {

constexpr double kSecondsPerHour = 3600;
constexpr double kMsPerSecond = 1000;

struct MonitoringOptions {
  ConnectionOptions connection;
  std::string rules_file;
  bool rules = false;
  bool json = false;
};

int finish_monitoring(const Result<int>& done) {
  return done ? *done : report_error(done.error());
}

// The rules of the file in place of the controller's, which must be those that were just read.
Result<nlohmann::json> set_rules(PlatformClient& client, const std::string& path) {
  REGATTA_TRY(text, read_named_file(path, kYamlMaxBytes));
  REGATTA_TRY(tree, parse_yaml(text, path));
  REGATTA_TRY(before, client.call({.target = "/v1/alerts/rules"}));
  auto after = client.call({.method = "PUT",
                            .target = "/v1/alerts/rules",
                            .headers = {{"If-Match", "\"" + text_in(before, "rev") + "\""}},
                            .body = json_text(tree)});
  if (!after) return Error{after.error().code, path + ": " + after.error().message};
  return after;
}

std::string rules_table(const nlohmann::json& answer) {
  std::vector<std::vector<std::string>> rows = {
      {"rule", "kind", "after", "clear", "limit", "enabled"}};
  for (const nlohmann::json& rule : answer.value("rules", nlohmann::json::array()))
    rows.push_back({printable(text_in(rule, "name"), 64), text_in(rule, "kind"),
                    fmt::format("{:g} s", rule.value("after_s", 0.0)),
                    fmt::format("{:g} s", rule.value("clear_s", 0.0)),
                    fmt::format("{:g}", rule.value("limit", 0.0)),
                    rule.value("enabled", true) ? "yes" : "no"});
  return format_table(rows);
}

std::string alerts_table(const nlohmann::json& answer) {
  std::vector<std::vector<std::string>> rows = {{"phase", "since", "rule", "alert"}};
  for (const nlohmann::json& alert : answer.value("items", nlohmann::json::array())) {
    const double age_s = os::system_now().value - alert.value("since_ms", 0.0) / kMsPerSecond;
    rows.push_back({text_in(alert, "phase"), fmt::format("{:.0f} s ago", age_s),
                    printable(text_in(alert, "rule"), 64), printable(text_in(alert, "text"), 200)});
  }
  return rows.size() == 1 ? "no alerts\n" : format_table(rows);
}

Result<int> show_alerts(const MonitoringOptions& options) {
  REGATTA_TRY(client, PlatformClient::open(options.connection));
  const bool is_rules = options.rules || !options.rules_file.empty();
  auto answer = !options.rules_file.empty() ? set_rules(client, options.rules_file)
                : is_rules                  ? client.call({.target = "/v1/alerts/rules"})
                                            : client.call({.target = "/v1/alerts"});
  if (!answer) return answer.error();
  if (options.json)
    fmt::print("{}\n", answer->dump());
  else
    std::fputs((is_rules ? rules_table(*answer) : alerts_table(*answer)).c_str(), stdout);
  return 0;
}

Result<int> show_tenants(const MonitoringOptions& options) {
  REGATTA_TRY(client, PlatformClient::open(options.connection));
  REGATTA_TRY(answer, client.call({.target = "/v1/tenants"}));
  if (options.json) {
    fmt::print("{}\n", answer.dump());
    return 0;
  }
  std::vector<std::vector<std::string>> rows = {{"queue", "user", "devices", "waiting",
                                                 "device hours", "use", "hours waited",
                                                 "money (" + text_in(answer, "currency") + ")"}};
  for (const nlohmann::json& tenant : answer.value("items", nlohmann::json::array())) {
    const double measured = tenant.value("measured_device_seconds", 0.0);
    const double used = tenant.value("used_device_seconds", 0.0);
    rows.push_back({printable(text_in(tenant, "queue"), 60), printable(text_in(tenant, "user"), 60),
                    std::to_string(tenant.value("devices", 0)),
                    std::to_string(tenant.value("pending", 0)),
                    fmt::format("{:.2f}", tenant.value("device_seconds", 0.0) / kSecondsPerHour),
                    measured > 0 ? fmt::format("{:.0f}%", 100 * used / measured) : "-",
                    fmt::format("{:.2f}", tenant.value("waiting_seconds", 0.0) / kSecondsPerHour),
                    fmt::format("{:.2f}", tenant.value("money", 0.0))});
  }
  std::fputs(format_table(rows).c_str(), stdout);
  return 0;
}

}  // namespace

void add_platform_monitoring_commands(CLI::App& app, int& exit_status) {
  const auto options = std::make_shared<MonitoringOptions>();
  CLI::App* alerts =
      add_command(app, "alerts", "Show alerts, or their rules", "regatta alerts --rules rules.yaml",
                  [=, &exit_status] { exit_status = finish_monitoring(show_alerts(*options)); });
  alerts->add_flag("--show-rules", options->rules, "Show the rules");
  alerts
      ->add_option("--rules", options->rules_file,
                   "YAML file with the list rules, in place of all; an operator may")
      ->type_name("FILE")
      ->check(not_empty());
  alerts->add_flag("--json", options->json, "Print the answer of the API");
  add_connection_options(*alerts, options->connection);
  CLI::App* tenants = add_command(
      app, "tenants", "Show what each user in each queue has had", "regatta tenants --json",
      [=, &exit_status] { exit_status = finish_monitoring(show_tenants(*options)); });
  tenants->add_flag("--json", options->json, "Print the answer of the API");
  add_connection_options(*tenants, options->connection);
}

}  // namespace regatta::cli
