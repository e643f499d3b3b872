// `regatta fabric report`: gives what `regatta probe` finds to the controller of the platform.
#include <algorithm>
#include <cstdio>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "regatta/app/cli/internal/arguments.h"
#include "regatta/app/cli/internal/fabric_command.h"
#include "regatta/app/cli/internal/followed_lines.h"
#include "regatta/app/cli/internal/job_file.h"
#include "regatta/app/cli/internal/platform_client.h"
#include "regatta/app/cli/internal/print_now.h"
#include "regatta/app/cli/internal/stop_signal.h"
#include "regatta/base/core/text.h"
#include "regatta/base/os/clock.h"

namespace regatta::cli {
namespace {

constexpr std::size_t kLineMost = 1 << 20;
constexpr Seconds kEvery{5};  // the controller forgets after 15 s
constexpr Seconds kLook{0.1};

struct ReportOptions {
  ConnectionOptions connection;
  std::string source = "probe";
};

// The faults that last, as the lines of `regatta probe --json` tell it.
class LastingFaults {
 public:
  // True when the line has changed them.
  bool take(std::string_view line) {
    const auto event = nlohmann::json::parse(line, nullptr, false);
    if (!event.is_object()) return false;
    const std::string name = text_in(event, "event");
    const std::string culprit = text_in(event, "culprit");
    if (name == "over") return faults_.erase(culprit) > 0;
    if ((name != "begun" && name != "changed") || !event.value("is_fault", false)) return false;
    nlohmann::json fault{{"culprit", culprit}, {"kind", text_in(event, "kind")}};
    for (const char* key : {"symptom", "server", "confidence", "loss_share", "or"})
      if (event.contains(key)) fault[key] = event[key];
    fault["since_ms"] = static_cast<long long>(event.value("since_s", 0.0) * 1000);
    faults_[culprit] = std::move(fault);
    return true;
  }

  nlohmann::json list() const {
    nlohmann::json all = nlohmann::json::array();
    for (const auto& [culprit, fault] : faults_)
      all.push_back(fault);
    return all;
  }

 private:
  std::map<std::string, nlohmann::json> faults_;
};

Status send(PlatformClient& client, const std::string& source, const LastingFaults& faults) {
  const nlohmann::json body{{"source", source}, {"verdicts", faults.list()}};
  const auto answer =
      client.call({.method = "PUT", .target = "/v1/fabric/verdicts", .body = body.dump()});
  return answer ? Status() : Status(answer.error());
}

Result<int> report_faults(const ReportOptions& options) {
  REGATTA_TRY(client, PlatformClient::open(options.connection));
  REGATTA_TRY(lines, FollowedLines::open("-", kLineMost));
  LastingFaults faults;
  // Wrong input, such as a token that may not do this, is told at once.
  REGATTA_TRY_DO(send(client, options.source, faults));
  const auto& stop = watch_stop_signals();
  Seconds sent = os::monotonic_now();
  bool is_due = false;
  std::string problem;
  while (!stop) {
    REGATTA_TRY_DO(lines.read(
        [&](std::string_view line) {
          print_now(std::string(line) + "\n");
          if (faults.take(line)) is_due = true;
        },
        os::monotonic_now()));
    const Seconds now = os::monotonic_now();
    if (is_due || now - sent >= kEvery) {
      const Status status = send(client, options.source, faults);
      const std::string latest = status ? "" : status.error().message;
      if (!latest.empty() && latest != problem)
        fmt::print(stderr, "regatta: {}; tries again every {:g} s\n", latest, kEvery.value);
      problem = latest;
      is_due = false;
      sent = now;
    }
    if (lines.is_over()) break;
    os::sleep_for(kLook);
  }
  // A prober that has ended knows of no fault.
  static_cast<void>(send(client, options.source, LastingFaults()));
  return 0;
}

}  // namespace

void add_fabric_report(CLI::App& fabric, int& exit_status) {
  const auto options = std::make_shared<ReportOptions>();
  CLI::App* report = add_command(
      fabric, "report", "Give the faults that regatta probe finds to the platform's controller",
      "regatta probe cluster.yaml --listen 0.0.0.0 --json | regatta fabric report",
      [=, &exit_status] {
        const auto done = report_faults(*options);
        exit_status = done ? *done : report_error(done.error());
      });
  report->add_option("--source", options->source, "Name of this prober, where there are several");
  add_connection_options(*report, options->connection);
}

}  // namespace regatta::cli
