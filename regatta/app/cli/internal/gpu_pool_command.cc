#include "regatta/app/cli/internal/gpu_pool_command.h"

#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include <fmt/core.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include "experimental/remote/pool_client.h"
#include "regatta/app/cli/internal/arguments.h"
#include "regatta/app/cli/internal/gpu_limits.h"
#include "regatta/app/cli/internal/job_file.h"
#include "regatta/app/cli/internal/stop_signal.h"
#include "regatta/app/report/gpu_report.h"
#include "regatta/base/core/units.h"
#include "regatta/base/os/process.h"
#include "regatta/gpu/sharing/daemon.h"

namespace regatta::cli {
namespace {

struct PoolOptions {
  std::string listen;
  std::string token_file;
  std::string daemon_socket = sharing::kDefaultSocket;
  std::string driver = "libcuda.so.1";
  std::string servers;
  std::string name;
  std::string memory;
  std::string compute;
  std::string priority;
  std::string rdma_address;
  int weight = 0;
  std::string transport = "auto";
  bool is_verbose = false;
  bool is_plain = false;
  std::string host_user = remote::kHostUser;
  std::vector<std::string> program;
  bool json = false;
};
using SharedPoolOptions = std::shared_ptr<PoolOptions>;

// A file that is installed with this program: beside it, or in ../lib.
Result<std::string> sister(const std::string& name) {
  REGATTA_TRY(folder, os::executable_folder());
  for (const std::string& place : {folder + "/" + name, folder + "/../lib/" + name}) {
    if (::access(place.c_str(), R_OK) == 0)
      return std::filesystem::path(place).lexically_normal().string();
  }
  return Error{Code::kInvalidInput, folder + "/" + name + ": is not there; install it"};
}

Status serve(const PoolOptions& options) {
  REGATTA_TRY(token, remote::read_token(options.token_file));
  REGATTA_TRY(host, sister("regatta-gpu-host"));
  REGATTA_TRY(self, sister("regatta"));
  return remote::serve_gpus({.listen = options.listen,
                             .token = token,
                             .daemon_socket = options.daemon_socket,
                             .driver = options.driver,
                             .regatta = self,
                             .host_program = host,
                             .rdma_address = options.rdma_address,
                             .host_user = options.host_user,
                             .is_plain = options.is_plain},
                            watch_stop_signals());
}

// Lists servers that do not answer beside those that do; when none does, the exit status is that of
// the last.
Result<int> list(const PoolOptions& options) {
  REGATTA_TRY(servers, remote::parse_servers(options.servers));
  REGATTA_TRY(token, remote::read_token(options.token_file));
  const std::vector<remote::ServerView> views =
      remote::view_servers(servers, {token, options.is_plain});
  int status = 1;
  bool is_any_there = false;
  for (const remote::ServerView& view : views) {
    if (view.devices)
      is_any_there = true;
    else
      status =
          options.json ? exit_status(view.devices.error()) : report_error(view.devices.error());
  }
  if (options.json)
    fmt::print("{}\n", report::gpu_pool_json(views).dump(2));
  else if (is_any_there)
    fmt::print("{}", report::gpu_pool_table(views));
  return is_any_there ? 0 : status;
}

Result<int> run(const PoolOptions& options) {
  REGATTA_TRY_DO(check_program(options.program));
  REGATTA_TRY(servers, remote::parse_servers(options.servers));
  REGATTA_TRY(token, remote::read_token(options.token_file));
  REGATTA_TRY(library, sister("libregatta_gpu_remote.so"));
  remote::SliceRequest slice{.name = options.name,
                             .weight = static_cast<unsigned>(options.weight),
                             .priority = options.priority};
  if (slice.name.empty()) {
    char host[64] = {};
    static_cast<void>(::gethostname(host, sizeof host - 1));
    slice.name = fmt::format("{:.30}-{}", host, ::getpid());
  }
  const auto memory = parse_bytes(options.memory);
  const Status enough = memory ? sharing::check_minimum_memory(*memory) : Status(memory.error());
  if (!enough) return Error{enough.error().code, "--memory: " + enough.error().message};
  slice.memory = static_cast<std::uint64_t>(memory->value);
  if (!options.compute.empty()) {
    const auto compute = sharing::parse_compute(options.compute);
    if (!compute) return Error{compute.error().code, "--compute: " + compute.error().message};
    slice.compute_ppm = *compute;
  }
  const remote::RemoteProgramOptions program{.library = library,
                                             .transport = options.transport,
                                             .rdma_address = options.rdma_address,
                                             .is_verbose = options.is_verbose,
                                             .is_plain = options.is_plain};
  REGATTA_TRY_DO(remote::check_encryption(program));
  REGATTA_TRY(lease, remote::lease_slice(servers, {token, options.is_plain}, slice,
                                         options.transport == "rdma"));
  return remote::run_with_lease(std::move(lease), program, options.program);
}

int status_of(const Result<int>& result) {
  return result ? *result : report_error(result.error());
}

void add_token(CLI::App& command, PoolOptions& options) {
  command
      .add_option("--token-file", options.token_file,
                  "File of mode 600; its first line is the pool's token, 16 letters or more")
      ->type_name("PATH")
      ->required()
      ->check(not_empty("name the file that holds the token"));
}

void add_plain(CLI::App& command, PoolOptions& options) {
  command.add_flag("--plain", options.is_plain,
                   "Without encryption, which RDMA needs: where nobody else is in the network; the "
                   "servers and the programs have to agree");
}

void add_serve(CLI::App& gpu, const SharedPoolOptions& options, int& exit_status) {
  CLI::App* command =
      add_command(gpu, "serve", "Lend slices of this machine's GPUs to other machines",
                  "regatta gpu serve --listen 0.0.0.0:7000 --token-file token", [=, &exit_status] {
                    const Status done = serve(*options);
                    exit_status = done ? 0 : report_error(done.error());
                  });
  command
      ->add_option("--listen", options->listen,
                   "Address of the service; port 0: the system chooses a port, which is printed")
      ->type_name("HOST:PORT")
      ->required()
      ->check(not_empty("write it like 0.0.0.0:7000"));
  add_token(*command, *options);
  add_socket_option(*command, options->daemon_socket);
  command->add_option("--driver", options->driver, "The CUDA driver's library")
      ->type_name("PATH")
      ->capture_default_str()
      ->check(not_empty());
  command
      ->add_option("--user", options->host_user,
                   "User of the processes that run the programs' calls, where this one is root")
      ->type_name("NAME")
      ->capture_default_str()
      ->check(not_empty());
  add_plain(*command, *options);
  command
      ->add_option("--rdma-address", options->rdma_address,
                   "Numeric address of the RDMA device, with --plain; the connection's if left out")
      ->type_name("ADDRESS")
      ->check(not_empty());
}

void add_pool(CLI::App& gpu, const SharedPoolOptions& options, int& exit_status) {
  CLI::App* pool = gpu.add_subcommand("pool", "Use slices of the GPUs of several servers");
  pool->footer(
      "Example:\n"
      "  regatta gpu pool --servers a:7000,b:7000 --token-file token ls");
  pool->require_subcommand(1);
  pool->add_option("--servers", options->servers, "GPU servers, separated by commas")
      ->type_name("HOST:PORT,...")
      ->required()
      ->check(not_empty("name at least one, like a:7000,b:7000"));
  add_token(*pool, *options);
  add_plain(*pool, *options);
  CLI::App* ls = add_command(*pool, "ls", "List the GPUs of the servers and their free memory",
                             "regatta gpu pool --servers a:7000 --token-file token ls --json",
                             [=, &exit_status] { exit_status = status_of(list(*options)); });
  ls->fallthrough();  // --servers may stand behind it, too
  ls->add_flag("--json", options->json, "Print JSON");
  CLI::App* start = add_command(
      *pool, "run", "Start a program on a slice of the server where it fits best",
      "regatta gpu pool --servers a:7000,b:7000 --token-file token run --memory 4GiB --compute 30 "
      "-- ./program",
      [=, &exit_status] { exit_status = status_of(run(*options)); });
  start->fallthrough();
  add_program(*start, options->program);
  start->add_option("--memory", options->memory, "Device memory, like 4GiB")
      ->type_name("SIZE")
      ->required()
      ->check(not_empty("write it like 4GiB"));
  start->add_option("--compute", options->compute, "Part of the GPU's time in percent, like 30")
      ->type_name("PERCENT")
      ->check(not_empty());
  start->add_option("--name", options->name, "The tenant; made up of host and process if left out")
      ->type_name("NAME")
      ->check(not_empty());
  start->add_option("--weight", options->weight, "Weight in the policies weight and burst-weight")
      ->type_name("N")
      ->check(whole_number(1, 10'000));
  start->add_option("--priority", options->priority, "high or normal")
      ->type_name("WORD")
      ->check(one_of({"high", "normal"}));
  start
      ->add_option("--transport", options->transport,
                   "tcp, rdma, or auto: with --plain, RDMA where both ends have a device, else TCP")
      ->type_name("WORD")
      ->capture_default_str()
      ->check(one_of({"auto", "tcp", "rdma"}));
  start
      ->add_option("--rdma-address", options->rdma_address,
                   "Numeric address of this end's RDMA device; the connection's if left out")
      ->type_name("ADDRESS")
      ->check(not_empty());
  start->add_flag("--verbose", options->is_verbose, "Say on stderr which transport is taken");
}

}  // namespace

void add_gpu_pool_commands(CLI::App& gpu, int& exit_status) {
  const auto options = std::make_shared<PoolOptions>();
  add_serve(gpu, options, exit_status);
  add_pool(gpu, options, exit_status);
}

}  // namespace regatta::cli
