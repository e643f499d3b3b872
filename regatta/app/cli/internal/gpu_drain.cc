#include "regatta/app/cli/internal/gpu_drain.h"

#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "regatta/app/cli/internal/arguments.h"
#include "regatta/app/cli/internal/gpu_limits.h"
#include "regatta/app/cli/internal/job_file.h"
#include "regatta/app/cli/internal/query_daemon.h"
#include "regatta/app/cli/internal/stop_signal.h"
#include "regatta/app/report/gpu_report.h"
#include "regatta/base/core/text.h"
#include "regatta/base/os/clock.h"
#include "regatta/gpu/sharing/control.h"
#include "regatta/gpu/sharing/messages.h"
#include "regatta/gpu/sharing/state.h"

namespace regatta::cli {
namespace {

using nlohmann::json;

struct DrainOptions {
  std::string socket = sharing::kDefaultSocket;
  int gpu = -1;  // -1: all
  int wait_s = 0;
  bool undo = false;
  bool json = false;
};

struct Answer {
  nlohmann::json raw;
  std::vector<report::DrainedGpu> gpus;  // those that are meant
};

Result<Answer> request_drain(const DrainOptions& options, const json& request) {
  REGATTA_TRY(answer, query_daemon(options.socket, request));
  REGATTA_TRY(gpus, report::read_drained_gpus(answer));
  if (options.gpu >= 0)
    std::erase_if(gpus, [&](const report::DrainedGpu& gpu) { return gpu.gpu != options.gpu; });
  return Answer{answer.raw(), std::move(gpus)};
}

// Waits until no tenant is left on the devices. kTimeout names those that are.
Status wait_until_empty(const DrainOptions& options, Answer& answer) {
  const std::atomic<bool>& stop = watch_stop_signals();
  const Seconds end = os::monotonic_now() + Seconds{static_cast<double>(options.wait_s)};
  for (;;) {
    std::vector<std::string> left;
    for (const report::DrainedGpu& gpu : answer.gpus) {
      if (!gpu.tenants.empty())
        left.push_back(fmt::format("GPU {}: {}", gpu.gpu, join(gpu.tenants, ", ")));
    }
    if (left.empty()) return {};
    if (stop || os::monotonic_now() >= end) {
      return Error{Code::kTimeout,
                   fmt::format("gpu drain: after {} s there is still {}; end them or wait longer "
                               "with --wait",
                               options.wait_s, join(left, "; "))};
    }
    os::sleep_for(Seconds{0.1});
    REGATTA_TRY(now, request_drain(options, {{"request", "drain"}}));
    answer = std::move(now);
  }
}

int run_drain(const DrainOptions& options) {
  json request{{"request", "drain"}, {"drained", !options.undo}};
  if (options.gpu >= 0) request["gpus"] = json::array({options.gpu});
  auto answer = request_drain(options, request);
  if (!answer) return report_error(answer.error());
  Status waited;
  if (options.wait_s != 0) waited = wait_until_empty(options, *answer);
  if (options.json) {
    fmt::print("{}\n", answer->raw.dump(2));
  } else if (waited) {
    for (const report::DrainedGpu& gpu : answer->gpus)
      fmt::print("{}", report::gpu_drain_text(gpu));
  }
  return waited ? 0 : report_error(waited.error());
}

}  // namespace

void add_gpu_drain(CLI::App& gpu, int& exit_status) {
  const auto options = std::make_shared<DrainOptions>();
  CLI::App* drain =
      gpu.add_subcommand("drain", "Stop new tenants and allocations on a GPU, before maintenance");
  drain->footer(
      "Running programs continue. Lasts until --undo, also across restarts of the machine.\n"
      "Example:\n"
      "  regatta gpu drain --device 0 --wait 600\n"
      "  regatta gpu drain --device 0 --undo");
  drain->callback([=, &exit_status] { exit_status = run_drain(*options); });
  drain->add_option("--device", options->gpu, "One GPU; all when left out")
      ->type_name("NUMBER")
      ->check(whole_number(0, sharing::kDevicesMax - 1));
  CLI::Option* wait =
      drain->add_option("--wait", options->wait_s, "Longest wait for its tenants to end")
          ->type_name("SECONDS")
          ->check(whole_number(1, 1'000'000));
  drain->add_flag("--undo", options->undo, "Accept tenants again")->excludes(wait);
  add_socket_option(*drain, options->socket);
  drain->add_flag("--json", options->json, "Print JSON");
}

}  // namespace regatta::cli
