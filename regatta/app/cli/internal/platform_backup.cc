#include "regatta/app/cli/internal/platform_backup.h"

#include <cerrno>
#include <cstdio>
#include <ctime>
#include <filesystem>
#include <memory>
#include <string>

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include "regatta/app/cli/internal/arguments.h"
#include "regatta/app/cli/internal/job_file.h"
#include "regatta/app/cli/internal/platform_client.h"
#include "regatta/base/core/text.h"
#include "regatta/base/os/process.h"
#include "regatta/base/os/unique_fd.h"

namespace regatta::cli {
namespace {

struct BackupCommandOptions {
  ConnectionOptions connection;
  std::string path;
  std::string state;
  bool json = false;
};

// A folder gets a file that is named by the time.
std::string backup_file(const std::string& path) {
  std::error_code error;
  if (!std::filesystem::is_directory(path, error)) return path;
  const std::time_t now = std::time(nullptr);
  std::tm utc{};
  ::gmtime_r(&now, &utc);
  char name[64] = {};
  std::strftime(name, sizeof name, "/regatta-%Y%m%dT%H%M%SZ.db", &utc);
  return path + name;
}

bool write_all(int file, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t count = ::write(file, bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(count));
  }
  return true;
}

// Fetches the store into `part`; how many bytes.
Result<long long> fetch_store(PlatformClient& client, const std::string& part) {
  const os::UniqueFd file(::open(part.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
  if (file.get() < 0) return os::errno_error(part);
  long long bytes = 0;
  int number = 0;
  REGATTA_TRY(head, client.download("/v1/backup", {}, [&](std::string_view piece) {
    bytes += static_cast<long long>(piece.size());
    const bool is_written = write_all(file.get(), piece);
    if (!is_written) number = errno;
    return is_written;
  }));
  if (number != 0) return os::errno_error(part, number);
  const auto wanted =
      parse_number<long long>(http::find_header(head.headers, "Regatta-Bytes")).value_or(-1);
  if (bytes != wanted)
    return Error{Code::kUnavailable,
                 fmt::format("backup: {} of {} bytes came; try again", bytes, wanted)};
  if (::fsync(file.get()) != 0) return os::errno_error(part);
  return bytes;
}

Result<int> back_up(const BackupCommandOptions& options) {
  REGATTA_TRY(client, PlatformClient::open(options.connection));
  const std::string path = backup_file(options.path);
  if (::access(path.c_str(), F_OK) == 0)
    return Error{Code::kInvalidInput, path + ": is there already; name another file"};
  const std::string part = path + ".part";
  const auto bytes = fetch_store(client, part);
  if (!bytes) {
    std::remove(part.c_str());
    return bytes.error();
  }
  if (std::rename(part.c_str(), path.c_str()) != 0) return os::errno_error(path);
  if (options.json)
    fmt::print("{}\n", nlohmann::json{{"file", path}, {"bytes", *bytes}}.dump());
  else
    fmt::print("{}: {} bytes; it has no keys: keep ca.pem and ca.key of the controller, too\n",
               path, *bytes);
  return 0;
}

// The program of the controller does it, as it alone knows the store.
Result<int> restore(const BackupCommandOptions& options) {
  REGATTA_TRY(programs, os::executable_folder());
  const std::string program = programs + "/regatta-controller";
  const char* argv[] = {program.c_str(),      "--state", options.state.c_str(), "--restore-from",
                        options.path.c_str(), nullptr};
  ::execv(program.c_str(), const_cast<char* const*>(argv));
  return os::errno_error(program);
}

int finish_backup(const Result<int>& done) {
  return done ? *done : report_error(done.error());
}

}  // namespace

void add_platform_backup_commands(CLI::App& app, int& exit_status) {
  const auto options = std::make_shared<BackupCommandOptions>();
  CLI::App* backup = add_command(
      app, "backup", "Write jobs, nodes, quotas, users and tokens into a file; admins may",
      "regatta backup /mnt/backup",
      [=, &exit_status] { exit_status = finish_backup(back_up(*options)); });
  backup->add_option("FILE", options->path, "New file, or a folder for one that the time names")
      ->required()
      ->check(not_empty());
  backup->add_flag("--json", options->json, "Print the file and its size as JSON");
  add_connection_options(*backup, options->connection);
  const auto given = std::make_shared<BackupCommandOptions>();
  CLI::App* restore_command =
      add_command(app, "restore", "Make a controller's state folder from a backup, on its machine",
                  "regatta restore regatta-20260101T000000Z.db --state /var/lib/regatta-new",
                  [=, &exit_status] { exit_status = finish_backup(restore(*given)); });
  restore_command->add_option("FILE", given->path, "File of regatta backup, or folder of --ship-to")
      ->required()
      ->check(not_empty());
  restore_command->add_option("--state", given->state, "New folder")
      ->type_name("FOLDER")
      ->required()
      ->check(not_empty());
}

}  // namespace regatta::cli
