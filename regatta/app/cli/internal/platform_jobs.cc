#include "regatta/app/cli/internal/platform_jobs.h"

#include <algorithm>
#include <cstdio>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "regatta/app/cli/internal/arguments.h"
#include "regatta/app/cli/internal/job_file.h"
#include "regatta/app/cli/internal/platform_client.h"
#include "regatta/app/cli/internal/platform_past.h"
#include "regatta/app/cli/internal/platform_why.h"
#include "regatta/app/cli/internal/print_now.h"
#include "regatta/app/cli/internal/submitted_file.h"
#include "regatta/base/core/text.h"
#include "regatta/base/os/clock.h"
#include "regatta/platform/control/job.h"
#include "regatta/platform/control/job_spec.h"

namespace regatta::cli {
namespace {

constexpr Seconds kLookAgain{0.2};  // between two looks at a job that is waited for

struct SubmitOptions {
  ConnectionOptions connection;
  std::string file;
  bool waits = false;
  bool is_trial = false;
  bool json = false;
};

struct ListOptions {
  ConnectionOptions connection;
  std::string phase;
  std::string queue;
  std::string user;
  bool is_mine = false;
  int limit = 100;
  bool json = false;
};

struct JobOptions {
  ConnectionOptions connection;
  std::string job;
  bool json = false;
};

struct LogOptions {
  ConnectionOptions connection;
  std::string job;
  int replica = 0;
  int rank = 0;
  int attempt = 0;  // 0: the latest
  bool follows = false;
  bool json = false;
};

// A request that comes again after a lost answer submits nothing twice.
std::string random_key() {
  std::random_device source;
  return fmt::format("{:08x}{:08x}{:08x}{:08x}", source(), source(), source(), source());
}

std::string job_target(const std::string& job, const char* action = "") {
  return "/v1/jobs/" + url_text(job) + action;
}

bool job_is_over(const std::string& phase) {
  return phase == "succeeded" || phase == "failed" || phase == "cancelled";
}

// The exit status of a job that is over; 1 where it failed without one.
int status_of_job(const nlohmann::json& job) {
  const nlohmann::json status = job.value("status", nlohmann::json::object());
  const std::string phase = text_in(status, "phase");
  if (phase == "succeeded") return 0;
  const int own = status.value("exit_status", 0);
  return phase == "failed" && own > 0 && own < 256 ? own : 1;
}

std::string phase_line(const nlohmann::json& job) {
  const nlohmann::json status = job.value("status", nlohmann::json::object());
  const std::string reason = text_in(status, "reason");
  return fmt::format("{}: {}{}", printable(text_in(job, "handle"), 80), text_in(status, "phase"),
                     reason.empty() ? "" : ": " + printable(reason, 300));
}

// Says on standard error what becomes of the job, and gives it when it is over.
Result<nlohmann::json> wait_for_job(PlatformClient& client, const std::string& id) {
  std::string last;
  for (;;) {
    REGATTA_TRY(job, client.call_again({.target = job_target(id)}));
    const std::string line = phase_line(job);
    if (line != last) fmt::print(stderr, "{}\n", line);
    last = line;
    if (job_is_over(text_in(job.value("status", nlohmann::json::object()), "phase"))) return job;
    os::sleep_for(kLookAgain);
  }
}

// The handles of the jobs that were submitted, or their numbers where it was a list.
std::vector<std::string> names_of(const nlohmann::json& answer) {
  if (answer.contains("array")) return {text_in(answer, "name") + "-" + text_in(answer, "id")};
  if (!answer.contains("ids")) return {text_in(answer, "handle")};
  std::vector<std::string> names;
  for (const nlohmann::json& id : answer["ids"])
    if (id.is_string()) names.push_back(id.get<std::string>());
  return names;
}

// The controller names a body that it does not know as a file.
Result<nlohmann::json> sent_file(const SubmitOptions& options, Result<nlohmann::json> answer) {
  if (answer || answer.error().code != Code::kInvalidInput) return answer;
  std::string message = answer.error().message;
  if (!message.starts_with("body") && !message.starts_with("job")) return answer;
  for (const char* name : {"body: ", "job: "})
    if (message.starts_with(name)) message.erase(0, std::string_view(name).size());
  return Error{Code::kInvalidInput, options.file + ": " + message};
}

// When the job would start, or that it never would (exit status 1); nothing is submitted.
Result<int> try_submission(PlatformClient& client, const SubmitOptions& options,
                           const std::string& body) {
  REGATTA_TRY(why, sent_file(options, client.call_again({.method = "POST",
                                                         .target = "/v1/jobs?dry_run=true",
                                                         .body = body})));
  if (options.json)
    fmt::print("{}\n", why.dump());
  else
    print_why(why);
  return why.value("fits", true) ? 0 : 1;
}

// The handles of all jobs of an array, else `names`.
std::vector<std::string> waited_for(const nlohmann::json& answer, std::vector<std::string> names) {
  const nlohmann::json spec = answer.value("spec", nlohmann::json::object());
  const auto array = control::parse_job_array(text_in(spec, "array"));
  if (!answer.contains("array") || !array) return names;
  std::vector<std::string> all;
  for (int i = 0; i < array->size(); ++i)
    all.push_back(fmt::format("{}[{}]", names.front(), array->index_at(i)));
  return all;
}

Result<int> submit(const SubmitOptions& options) {
  REGATTA_TRY(body, load_submitted_jobs(options.file));
  REGATTA_TRY(client, PlatformClient::open(options.connection));
  if (options.is_trial) return try_submission(client, options, body);
  const ApiCall call{.method = "POST",
                     .target = "/v1/jobs",
                     .headers = {{"Idempotency-Key", random_key()}},
                     .body = body};
  REGATTA_TRY(answer, sent_file(options, client.call_again(call)));
  const std::vector<std::string> names = names_of(answer);
  if (!options.json)
    for (const std::string& name : names)
      print_now(name + "\n");
  if (!options.waits) {
    if (options.json) fmt::print("{}\n", answer.dump());
    return 0;
  }
  int worst = 0;
  for (const std::string& name : waited_for(answer, names)) {
    REGATTA_TRY(job, wait_for_job(client, name));
    if (options.json) print_now(job.dump() + "\n");
    if (const int status = status_of_job(job); worst == 0) worst = status;
  }
  return worst;
}

std::string list_target(const ListOptions& options, int limit, const std::string& after) {
  std::string target = fmt::format("/v1/jobs?limit={}", limit);
  if (!options.phase.empty()) target += "&phase=" + url_text(options.phase);
  if (!options.queue.empty()) target += "&queue=" + url_text(options.queue);
  if (!options.user.empty()) target += "&user=" + url_text(options.user);
  if (options.is_mine) target += "&mine=true";
  if (!after.empty()) target += "&after=" + url_text(after);
  return target;
}

// Page by page, the newest first.
Result<nlohmann::json> jobs_of(PlatformClient& client, const ListOptions& options) {
  constexpr int kPage = 500;
  nlohmann::json jobs = nlohmann::json::array();
  std::string after;
  for (;;) {
    const int left = options.limit - static_cast<int>(jobs.size());
    REGATTA_TRY(page, client.call({.target = list_target(options, std::min(left, kPage), after)}));
    for (nlohmann::json& job : page["items"])
      jobs.push_back(std::move(job));
    after = text_in(page, "next");
    if (after.empty() || static_cast<int>(jobs.size()) >= options.limit) return jobs;
  }
}

// Holding a job keeps its next start back, and nothing else.
std::string shown_phase(const nlohmann::json& status) {
  const std::string phase = text_in(status, "phase");
  return phase == "pending" && status.value("held", false) ? "held" : phase;
}

std::string start_text(const nlohmann::json& status) {
  const long long likely = status.value("start", nlohmann::json::object()).value("likely_ms", 0LL);
  return likely > 0 ? "; starts likely at " + time_text(likely) : "";
}

Result<int> list_jobs(const ListOptions& options) {
  REGATTA_TRY(client, PlatformClient::open(options.connection));
  REGATTA_TRY(jobs, jobs_of(client, options));
  if (options.json) {
    fmt::print("{}\n", jobs.dump());
    return 0;
  }
  std::vector<std::vector<std::string>> rows = {
      {"job", "phase", "queue", "user", "devices", "submitted", "reason"}};
  for (const nlohmann::json& job : jobs) {
    const nlohmann::json status = job.value("status", nlohmann::json::object());
    rows.push_back({printable(text_in(job, "handle"), 60), shown_phase(status),
                    printable(text_in(job, "queue"), 40), printable(text_in(job, "user"), 40),
                    std::to_string(status.value("devices", 0)),
                    time_text(status.value("submitted_ms", 0LL)),
                    printable(text_in(status, "reason"), 100) + start_text(status)});
  }
  std::fputs(jobs.empty() ? "no jobs\n" : format_table(rows).c_str(), stdout);
  return 0;
}

void print_job(const nlohmann::json& job) {
  const nlohmann::json status = job.value("status", nlohmann::json::object());
  fmt::print("{}\n", phase_line(job));
  fmt::print("queue {}, user {}, priority {}, attempts {}, failures {}, evictions {}\n",
             printable(text_in(job, "queue"), 60), printable(text_in(job, "user"), 60),
             job.value("priority", 0), status.value("attempts", 0), status.value("failures", 0),
             status.value("evictions", 0));
  fmt::print("submitted {}, started {}, ended {}\n", time_text(status.value("submitted_ms", 0LL)),
             time_text(status.value("started_ms", 0LL)), time_text(status.value("ended_ms", 0LL)));
  if (status.contains("exit_status"))
    fmt::print("exit status {}\n", status.value("exit_status", 0));
}

// The last value of each series, and beside it what was predicted.
void print_metrics(const nlohmann::json& metrics) {
  const auto list = [](const nlohmann::json& from, const char* key) {
    const auto found = from.find(key);
    return found != from.end() && found->is_array() ? *found : nlohmann::json::array();
  };
  const auto number = [](const nlohmann::json& value) {
    return value.is_number() ? fmt::format("{:.6g}", value.get<double>()) : std::string("nan");
  };
  const auto predicted = metrics.find("predicted");
  const bool is_predicted = predicted != metrics.end() && predicted->is_object();
  std::vector<std::vector<std::string>> rows = {{"metric", "step", "value", "predicted"}};
  for (const nlohmann::json& series : list(metrics, "series")) {
    const nlohmann::json steps = list(series, "steps");
    const nlohmann::json values = list(series, "values");
    if (steps.empty() || values.empty()) continue;
    const std::string name = text_in(series, "name");
    const bool has_other = is_predicted && predicted->contains(name);
    rows.push_back({printable(name, 64), number(steps.back()),
                    number(values.back()) + " " + printable(text_in(series, "unit"), 20),
                    has_other ? number((*predicted)[name]) : ""});
  }
  if (rows.size() > 1) std::fputs(format_table(rows).c_str(), stdout);
}

Result<int> show_job(PlatformClient& client, const nlohmann::json& job) {
  print_job(job);
  REGATTA_TRY_DO(print_attempts(client, text_in(job, "id")));
  // Its node may be away, or may have forgotten them: the job is shown all the same.
  if (const auto metrics = client.call({.target = job_target(text_in(job, "id"), "/metrics")}))
    print_metrics(*metrics);
  return 0;
}

// Shows a job, after `action` on it ("" for none).
Result<int> act_on_job(const JobOptions& options, const std::string& action) {
  REGATTA_TRY(client, PlatformClient::open(options.connection));
  ApiCall call{.target = job_target(options.job)};
  if (!action.empty())
    call = {.method = "POST", .target = job_target(options.job, ("/" + action).c_str())};
  REGATTA_TRY(job, client.call_again(call));
  if (options.json) {
    fmt::print("{}\n", job.dump());
  } else if (action.empty()) {
    return show_job(client, job);
  } else {
    fmt::print("{}\n", phase_line(job));
  }
  return 0;
}

// A job that has not started yet has no output: with -f that is waited for.
Status wait_for_output(PlatformClient& client, const std::string& job) {
  for (;;) {
    REGATTA_TRY(object, client.call_again({.target = job_target(job)}));
    const nlohmann::json status = object.value("status", nlohmann::json::object());
    const std::string phase = text_in(status, "phase");
    if (phase == "running" || phase == "stopping" || job_is_over(phase)) return {};
    os::sleep_for(kLookAgain);
  }
}

// Each complete line as an object.
void print_log_lines(const LogOptions& options, LineSplitter& lines) {
  while (const auto line = lines.next()) {
    const nlohmann::json object = {
        {"replica", options.replica}, {"rank", options.rank}, {"text", *line}};
    const std::string text =
        object.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
    std::fputs(text.c_str(), stdout);
  }
}

Result<int> print_log(const LogOptions& options) {
  REGATTA_TRY(client, PlatformClient::open(options.connection));
  if (options.follows) REGATTA_TRY_DO(wait_for_output(client, options.job));
  std::string target = job_target(options.job) +
                       fmt::format("/logs?replica={}&rank={}", options.replica, options.rank);
  if (options.attempt > 0) target += fmt::format("&attempt={}", options.attempt);
  LineSplitter lines;
  bool is_line_open = false;
  const auto print = [&](std::string_view piece) {
    if (options.json) {
      lines.append(piece);
      print_log_lines(options, lines);
      if (!piece.empty()) is_line_open = piece.back() != '\n';
    } else {
      std::fwrite(piece.data(), 1, piece.size(), stdout);
    }
    return std::fflush(stdout) == 0;
  };
  REGATTA_TRY_DO(client.stream(target + (options.follows ? "&follow=true" : ""), {}, print));
  if (is_line_open) {
    lines.append("\n");
    print_log_lines(options, lines);
  }
  return 0;
}

int finish_job_command(const Result<int>& done) {
  return done ? *done : report_error(done.error());
}

void add_job_action(CLI::App& app, int& exit_status, const char* name, const char* help,
                    const std::string& action) {
  const auto options = std::make_shared<JobOptions>();
  CLI::App* command = add_command(
      app, name, help, fmt::format("regatta {} hello-1", name),
      [=, &exit_status] { exit_status = finish_job_command(act_on_job(*options, action)); });
  command->add_option("JOB", options->job, "Handle or number of the job")
      ->required()
      ->check(not_empty());
  command->add_flag("--json", options->json, "Print the job as the API shows it");
  add_connection_options(*command, options->connection);
}

void add_submit(CLI::App& app, int& exit_status) {
  const auto options = std::make_shared<SubmitOptions>();
  CLI::App* submit_command =
      add_command(app, "submit", "Submit a job to the platform and print its handle",
                  "regatta submit examples/submitted_job.yaml --wait",
                  [=, &exit_status] { exit_status = finish_job_command(submit(*options)); });
  submit_command->add_option("FILE", options->file, "Job, or a list of them below the key jobs")
      ->required()
      ->check(not_empty());
  submit_command->add_flag("--wait", options->waits,
                           "Follow it to its end, and exit with its status");
  submit_command->add_flag("--dry-run", options->is_trial,
                           "Submit nothing: say whether it fits and when it would start");
  submit_command->add_flag("--json", options->json, "Print the job as the API shows it");
  add_connection_options(*submit_command, options->connection);
}

void add_jobs(CLI::App& app, int& exit_status) {
  const auto options = std::make_shared<ListOptions>();
  CLI::App* jobs = add_command(app, "jobs", "List the jobs of the platform, the newest first",
                               "regatta jobs --phase running", [=, &exit_status] {
                                 exit_status = finish_job_command(list_jobs(*options));
                               });
  jobs->add_option("--phase", options->phase, "Only those in this phase")
      ->type_name("PHASE")
      ->check(one_of({control::kJobPhaseNames.begin(), control::kJobPhaseNames.end()}));
  jobs->add_option("--queue", options->queue, "Only those of this queue")
      ->type_name("QUEUE")
      ->check(not_empty());
  jobs->add_option("--user", options->user, "Only those of this user")
      ->type_name("USER")
      ->check(not_empty());
  jobs->add_flag("--mine", options->is_mine, "Only your own");
  jobs->add_option("--limit", options->limit, "At most so many")
      ->type_name("N")
      ->capture_default_str()
      ->check(whole_number(1, 1'000'000));
  jobs->add_flag("--json", options->json, "Print a JSON list of jobs as the API shows them");
  add_connection_options(*jobs, options->connection);
}

void add_logs(CLI::App& app, int& exit_status) {
  const auto options = std::make_shared<LogOptions>();
  CLI::App* logs = add_command(
      app, "logs", "Print the output of a rank of a job", "regatta logs hello-1 --rank 1 -f",
      [=, &exit_status] { exit_status = finish_job_command(print_log(*options)); });
  logs->add_option("JOB", options->job, "Handle or number of the job")
      ->required()
      ->check(not_empty());
  logs->add_option("--replica", options->replica, "Place of the replica in its gang")
      ->type_name("R")
      ->capture_default_str()
      ->check(whole_number(0, 1'048'575));
  logs->add_option("--rank", options->rank, "Rank within the replica")
      ->type_name("N")
      ->capture_default_str()
      ->check(whole_number(0, 1'048'575));
  logs->add_option("--attempt", options->attempt, "Number of an earlier attempt, see regatta job")
      ->type_name("A")
      ->check(whole_number(1, 1'000'000'000));
  logs->add_flag("--json", options->json, "Print a JSON object for each line");
  logs->add_flag("-f,--follow", options->follows, "Wait for its start, and go on until its end");
  add_connection_options(*logs, options->connection);
}

}  // namespace

void add_platform_job_commands(CLI::App& app, int& exit_status) {
  add_submit(app, exit_status);
  add_jobs(app, exit_status);
  add_job_action(app, exit_status, "job", "Show a job of the platform", "");
  add_logs(app, exit_status);
  add_job_action(app, exit_status, "cancel", "End a job of the platform", "cancel");
  add_job_action(app, exit_status, "hold", "Keep a job that waits from starting", "hold");
  add_job_action(app, exit_status, "release", "Let a job that is held start", "release");
}

}  // namespace regatta::cli
