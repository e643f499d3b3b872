#include <algorithm>
#include <cctype>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <system_error>
#include <vector>

#include <fmt/core.h>

#include "regatta/app/cli/internal/arguments.h"
#include "regatta/app/cli/internal/gpu_containers.h"
#include "regatta/app/cli/internal/gpu_limits.h"
#include "regatta/app/cli/internal/job_file.h"
#include "regatta/base/core/text.h"
#include "regatta/base/os/file.h"
#include "regatta/base/os/process.h"
#include "regatta/gpu/sharing/cdi.h"
#include "regatta/gpu/sharing/messages.h"

namespace regatta::cli {
namespace {

namespace fs = std::filesystem;

constexpr const char* kLibrary = "libregatta_gpu.so";
constexpr const char* kInstalled = "/usr/lib/regatta";

struct CdiCommandOptions {
  std::string name = "default";
  std::string socket = sharing::kDefaultSocket;
  std::string library;
  std::string preload;
  LimitOptions limits;
  bool json = false;
};

Error wrong(const std::string& what) {
  return {Code::kInvalidInput, what};
}

bool exists(const std::string& path) {
  std::error_code error;
  return fs::is_regular_file(path, error);
}

// Beside this program, as it is built; else where it is installed.
Result<std::string> find_library(const CdiCommandOptions& options) {
  std::vector<std::string> places = {options.library};
  if (options.library.empty()) {
    REGATTA_TRY(folder, os::executable_folder());
    places = {folder + "/" + kLibrary, folder + "/../lib/" + kLibrary,
              std::string(kInstalled) + "/" + kLibrary};
  }
  for (const std::string& place : places) {
    if (exists(place)) return fs::absolute(place).lexically_normal().string();
  }
  return wrong(
      fmt::format("--library: {}: no such file; give the path of {}", places.back(), kLibrary));
}

// The loader ends a path at a blank or a colon, and takes what its user cannot read for nothing.
Status check_loadable(const std::string& option, const std::string& path) {
  if (path.find_first_of(" \t\n:") != std::string::npos) {
    return wrong(fmt::format(
        "{}: {}: the loader takes no path with blanks or colons; put the file in another folder",
        option, printable(path, 200)));
  }
  std::error_code error;
  if ((fs::status(path, error).permissions() & fs::perms::others_read) == fs::perms::none) {
    return wrong(fmt::format(
        "{0}: {1}: other users cannot read it; set it free with: chmod a+r {1}", option, path));
  }
  return {};
}

// The file that the container's loader reads; one of its lines must be the library.
Result<std::string> find_preload(const CdiCommandOptions& options, const std::string& library) {
  REGATTA_TRY_DO(check_loadable("--library", library));
  if (options.preload == "env") return std::string();
  const std::string path = options.preload.empty()
                               ? fs::path(library).parent_path().string() + "/ld.so.preload"
                               : fs::absolute(options.preload).lexically_normal().string();
  std::error_code error;
  if (fs::is_directory(path, error))
    return wrong(fmt::format("--preload: {}: is a folder; name the file in it", path));
  const auto text = os::read_text_file(path);
  const std::vector<std::string> lines = split(text ? *text : "", '\n');
  if (std::ranges::find(lines, library) != lines.end()) {
    REGATTA_TRY_DO(check_loadable("--preload", path));
    return path;
  }
  return wrong(fmt::format("--preload: {}: {}; write it with: echo {} > {}", path,
                           text ? "does not name the library" : "no such file", library, path));
}

// Containers see the whole folder of the socket.
Status check_socket(const std::string& socket) {
  const fs::path path(socket);
  const std::string name = fs::path(sharing::kDefaultSocket).filename().string();
  if (!path.is_absolute() || path.filename() != name) {
    return wrong(
        fmt::format("--socket: {}: containers look for a socket that is called {} in a "
                    "folder of its own; start the daemon with --socket {}",
                    socket, name, sharing::kDefaultSocket));
  }
  std::error_code error;
  for (fs::directory_iterator entry(path.parent_path(), error), end; !error && entry != end;
       entry.increment(error)) {
    // The libraries that regatta gpu run puts there are for every user.
    const std::string other = entry->path().filename().string();
    if (other == name || other.starts_with("driver-")) continue;
    return wrong(
        fmt::format("--socket: {}: containers would see {}, too; start the daemon with a "
                    "socket in a folder of its own",
                    socket, entry->path().string()));
  }
  return {};
}

// The limits as words for the hook.
std::vector<std::string> words_of(const LimitOptions& limits) {
  std::vector<std::string> words;
  const auto add = [&](const char* option, const std::string& value) {
    if (!value.empty()) words.insert(words.end(), {option, value});
  };
  add("--memory", limits.memory);
  add("--compute", limits.compute);
  add("--weight", limits.weight == 0 ? "" : std::to_string(limits.weight));
  add("--priority", limits.priority);
  add("--on-fault", limits.on_fault);
  add("--gpu", limits.gpu ? std::to_string(*limits.gpu) : "");
  return words;
}

Status check_name(const std::string& name) {
  const auto is_plain = [](unsigned char letter) { return std::isalnum(letter) != 0; };
  const auto is_allowed = [&](unsigned char letter) {
    return is_plain(letter) || letter == '-' || letter == '_' || letter == '.';
  };
  if (is_plain(name.front()) && is_plain(name.back()) &&
      std::all_of(name.begin(), name.end(), is_allowed))
    return {};
  return wrong(
      fmt::format("--name: '{}': a device's name has letters, digits, and between them "
                  "'-', '_' and '.'",
                  printable(name, 60)));
}

Result<std::string> cdi_text(const CdiCommandOptions& options) {
  REGATTA_TRY_DO(check_name(options.name));
  if (const auto limits = limits_of(options.limits); !limits) return limits.error();
  REGATTA_TRY_DO(check_socket(options.socket));
  REGATTA_TRY(library, find_library(options));
  REGATTA_TRY(preload, find_preload(options, library));
  REGATTA_TRY(folder, os::executable_folder());
  const auto spec = sharing::cdi_spec({.name = options.name,
                                       .socket = options.socket,
                                       .library = library,
                                       .preload = preload,
                                       .program = folder + "/regatta",
                                       .limits = words_of(options.limits)});
  return options.json ? spec.dump(2) + "\n" : sharing::yaml_text(spec);
}

int run_cdi(const CdiCommandOptions& options) {
  const auto text = cdi_text(options);
  if (!text) return report_error(text.error());
  std::fputs(text->c_str(), stdout);
  return 0;
}

}  // namespace

void add_gpu_cdi(CLI::App& gpu, int& exit_status) {
  const auto options = std::make_shared<CdiCommandOptions>();
  CLI::App* cdi = gpu.add_subcommand("cdi", "Print a CDI device for container runtimes, as YAML");
  cdi->footer(
      "The annotations of a container may only lower these limits.\n"
      "Example:\n"
      "  regatta gpu cdi --name small --memory 4GiB --compute 30 > /etc/cdi/regatta-small.yaml\n"
      "  podman run --device regatta.gpu/slice=small --device nvidia.com/gpu=0 IMAGE");
  cdi->add_option("--name", options->name, "Name of the device: regatta.gpu/slice=NAME")
      ->type_name("NAME")
      ->capture_default_str()
      ->check(not_empty());
  add_limit_options(*cdi, options->limits);
  add_fault_option(*cdi, options->limits);
  cdi->add_option("--socket", options->socket,
                  "The daemon's socket; its folder is mounted into containers")
      ->type_name("PATH")
      ->capture_default_str()
      ->check(not_empty());
  cdi->add_option(
         "--library", options->library,
         fmt::format("{}; beside this program or in {} when left out", kLibrary, kInstalled))
      ->type_name("PATH")
      ->check(not_empty());
  cdi->add_option("--preload", options->preload,
                  "File that becomes /etc/ld.so.preload, by default beside the library; or env, "
                  "for LD_PRELOAD, which a program may drop")
      ->type_name("PATH")
      ->check(not_empty());
  cdi->add_flag("--json", options->json, "Print JSON");
  cdi->callback([=, &exit_status] { exit_status = run_cdi(*options); });
}

}  // namespace regatta::cli
