#include "regatta/app/cli/internal/gpu_limits.h"

#include "regatta/app/cli/internal/arguments.h"
#include "regatta/gpu/sharing/state.h"

namespace regatta::cli {

void add_socket_option(CLI::App& command, std::string& socket) {
  command.add_option("--socket", socket, "The daemon's socket")
      ->type_name("PATH")
      ->capture_default_str()
      ->check(not_empty());
}

void add_program(CLI::App& command, std::vector<std::string>& program) {
  command.add_option("PROGRAM", program, "Program and its arguments, after --")->required();
}

Status check_program(const std::vector<std::string>& program) {
  if (!program.front().empty()) return {};
  return Error{Code::kInvalidInput,
               "PROGRAM: the text is empty; write the program's name after --"};
}

void add_tenant(CLI::App& command, std::string& name) {
  command.add_option("NAME", name, "The tenant")
      ->required()
      ->check(not_empty("write the tenant's name; regatta gpu ps shows those that there are"));
}

void add_limit_options(CLI::App& command, LimitOptions& options) {
  CLI::Option* memory =
      command
          .add_option("--memory", options.memory,
                      "Limit of device memory, 2MiB or more, like 4GiB or 0=4GiB,1=8GiB")
          ->type_name("SIZE")
          ->check(not_empty());
  command
      .add_option("--compute", options.compute, "Share of the device's time in percent, like 30")
      ->type_name("PERCENT")
      ->check(not_empty());
  command.add_option("--weight", options.weight, "Weight in the policies weight and burst-weight")
      ->type_name("N")
      ->check(whole_number(1, 10'000));
  command.add_option("--priority", options.priority, "high or normal")
      ->type_name("WORD")
      ->check(one_of({"high", "normal"}));
  command.add_option("--gpu", options.gpu, "GPU of the --memory limit")
      ->type_name("NUMBER")
      ->default_str("0")
      ->check(whole_number(0, sharing::kDevicesMax - 1))
      ->needs(memory);
}

void add_fault_option(CLI::App& command, LimitOptions& options) {
  command
      .add_option(
          "--on-fault", options.on_fault,
          "While the daemon cannot be asked, for which a call waits 5 s: open, memory is given and "
          "counted later, or closed, none is given, which is so when left out")
      ->type_name("WORD")
      ->check(one_of({"open", "closed"}));
}

Result<sharing::GpuSlice> limits_of(const LimitOptions& options) {
  sharing::GpuSlice slice;
  if (!options.memory.empty()) {
    const auto memory = sharing::parse_memory(options.memory, options.gpu);
    if (!memory) return Error{memory.error().code, "--memory: " + memory.error().message};
    slice.memory = *memory;
  }
  if (!options.compute.empty()) {
    const auto compute = sharing::parse_compute(options.compute);
    if (!compute) return Error{compute.error().code, "--compute: " + compute.error().message};
    slice.compute_ppm = *compute;
  }
  if (options.weight != 0) slice.weight = static_cast<unsigned>(options.weight);
  if (!options.priority.empty()) slice.is_high_priority = options.priority == "high";
  return slice;
}

Status add_limits(nlohmann::json& request, const LimitOptions& options) {
  REGATTA_TRY(slice, limits_of(options));
  sharing::add_to_request(request, slice);
  if (!options.on_fault.empty()) request["on_fault"] = options.on_fault;
  return {};
}

}  // namespace regatta::cli
