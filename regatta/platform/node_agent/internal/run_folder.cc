#include "regatta/platform/node_agent/internal/run_folder.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include <fcntl.h>
#include <unistd.h>

#include "regatta/base/core/text.h"

namespace regatta::node_agent {
namespace {

constexpr const char* kSpecMark = "regatta-replica-1";
constexpr const char* kExitMark = "regatta-exit-1";
constexpr std::size_t kSmallFileMost = std::size_t{16} << 20;

Error file_error(const std::string& path, int number) {
  return {number == ENOENT ? Code::kNotFound : Code::kUnavailable,
          path + ": " + std::strerror(number)};
}

// "a,b": numbers of groups.
std::string group_list(const std::vector<gid_t>& groups) {
  std::string text;
  for (const gid_t group : groups)
    text += (text.empty() ? "" : ",") + std::to_string(group);
  return text;
}

struct SpecReader {
  ReplicaSpec spec;
  ProcessUser user;
  bool has_user = false;

  template <typename Number>
  static bool read(std::string_view text, Number& to) {
    const auto number = parse_number<Number>(text);
    if (number) to = *number;
    return number.has_value();
  }

  bool read_groups(std::string_view text) {
    while (!text.empty()) {
      const std::size_t end = std::min(text.find(','), text.size());
      gid_t group = 0;
      if (!read(text.substr(0, end), group)) return false;
      user.groups.push_back(group);
      text.remove_prefix(std::min(end + 1, text.size()));
    }
    return true;
  }

  bool take(std::string_view key, std::string_view value) {
    if (key == "argument") {
      spec.command.emplace_back(value);
    } else if (key == "variable") {
      const std::size_t equals = value.find('=');
      if (equals == 0 || equals == std::string_view::npos) return false;
      spec.environment.emplace_back(value.substr(0, equals), value.substr(equals + 1));
    } else if (key == "folder") {
      spec.working_folder = value;
    } else if (key == "cgroup") {
      spec.cgroup = value;
    } else if (key == "uid") {
      has_user = true;
      return read(value, user.uid);
    } else if (key == "gid") {
      return read(value, user.gid);
    } else if (key == "groups") {
      return read_groups(value);
    } else if (key == "first_rank") {
      return read(value, spec.first_rank) && spec.first_rank >= 0;
    } else if (key == "ranks") {
      return read(value, spec.ranks) && spec.ranks >= 1 && spec.ranks <= 1024;
    } else if (key == "log_bytes_max") {
      return read(value, spec.log_bytes_max) && spec.log_bytes_max >= 1;
    } else if (key == "grace_ms") {
      return read(value, spec.grace_ms) && spec.grace_ms >= 0;
    } else if (key == "stop_signal") {
      return read(value, spec.stop_signal) && spec.stop_signal >= 1 && spec.stop_signal <= 64;
    } else if (key == "lease_ms") {
      return read(value, spec.lease_ms) && spec.lease_ms >= -1;
    }
    return true;  // of a newer agent
  }
};

Status write_and_sync(int fd, const std::string& path, const std::string& text) {
  std::size_t written = 0;
  while (written < text.size()) {
    const ssize_t count = ::write(fd, text.data() + written, text.size() - written);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return file_error(path, errno);
    written += static_cast<std::size_t>(count);
  }
  if (::fsync(fd) != 0) return file_error(path, errno);
  return {};
}

struct flock whole_file(short type) {
  struct flock lock {};
  lock.l_type = type;
  lock.l_whence = SEEK_SET;
  return lock;
}

}  // namespace

bool ReplicaSpec::operator==(const ReplicaSpec& other) const {
  return encode(*this) == encode(other);
}

std::string encode(const ReplicaSpec& spec) {
  std::string text = kSpecMark;
  const auto add = [&](const char* key, const std::string& value) {
    text += '\0';
    text += key;
    text += '=';
    text += value;
  };
  for (const std::string& argument : spec.command)
    add("argument", argument);
  for (const auto& [name, value] : spec.environment) {
    add("variable", name);
    text += '=';
    text += value;
  }
  add("folder", spec.working_folder);
  add("cgroup", spec.cgroup);
  if (spec.user) {
    add("uid", std::to_string(spec.user->uid));
    add("gid", std::to_string(spec.user->gid));
    add("groups", group_list(spec.user->groups));
  }
  add("first_rank", std::to_string(spec.first_rank));
  add("ranks", std::to_string(spec.ranks));
  add("log_bytes_max", std::to_string(spec.log_bytes_max));
  add("grace_ms", std::to_string(spec.grace_ms));
  add("stop_signal", std::to_string(spec.stop_signal));
  add("lease_ms", std::to_string(spec.lease_ms));
  return text + '\0';
}

Result<ReplicaSpec> decode_replica_spec(const std::string& text) {
  SpecReader reader;
  std::size_t begin = 0;
  for (int line = 0; begin < text.size(); ++line) {
    const std::size_t end = text.find('\0', begin);
    if (end == std::string::npos) return Error{Code::kInvalidInput, "spec: its end is missing"};
    const std::string_view one = std::string_view(text).substr(begin, end - begin);
    begin = end + 1;
    if (line == 0) {
      if (one != kSpecMark) return Error{Code::kInvalidInput, "spec: it is of another version"};
      continue;
    }
    const std::size_t equals = one.find('=');
    if (equals == std::string_view::npos ||
        !reader.take(one.substr(0, equals), one.substr(equals + 1)))
      return Error{Code::kInvalidInput, "spec: line " + std::to_string(line) + " is wrong"};
  }
  if (reader.spec.command.empty() || reader.spec.command.front().empty())
    return Error{Code::kInvalidInput, "spec: it has no command"};
  if (reader.has_user) reader.spec.user = std::move(reader.user);
  return std::move(reader.spec);
}

std::string encode(const ReplicaExit& exit) {
  return std::string(kExitMark) + "\nstatus " + std::to_string(exit.exit_status) + "\nsignal " +
         std::to_string(exit.signal) + "\nnode_fault " + (exit.is_node_fault ? "1" : "0") +
         "\nrunning_ms " + std::to_string(exit.running_ms) + "\nreason " + exit.reason + "\n";
}

Result<ReplicaExit> decode_replica_exit(const std::string& text) {
  if (!text.starts_with(kExitMark))
    return Error{Code::kInvalidInput, "exit file: it is of another version"};
  ReplicaExit exit;
  int found = 0;  // a bit for each line that must be there
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    const std::string line = text.substr(begin, end - begin);
    begin = end + 1;
    const std::size_t space = line.find(' ');
    if (space == std::string::npos) continue;
    const std::string key = line.substr(0, space);
    const std::string value = line.substr(space + 1);
    if (key == "reason") exit.reason = value;
    const auto number = parse_number<std::int64_t>(value);
    if (!number) continue;
    if (key == "running_ms") exit.running_ms = *number;
    if (*number < 0 || *number > 255) continue;
    if (key == "status") found |= 1, exit.exit_status = static_cast<int>(*number);
    if (key == "signal") found |= 2, exit.signal = static_cast<int>(*number);
    if (key == "node_fault") found |= 4, exit.is_node_fault = *number != 0;
  }
  if (found != 7) return Error{Code::kInvalidInput, "exit file: a line is missing or wrong"};
  return exit;
}

std::string spec_path(const std::string& run) {
  return run + "/spec";
}
std::string exit_path(const std::string& run) {
  return run + "/exit";
}
std::string lock_path(const std::string& run) {
  return run + "/lock";
}

Status write_durably(const std::string& path, const std::string& text) {
  const std::string beside = path + ".new";
  const int fd = ::open(beside.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (fd < 0) return file_error(beside, errno);
  Status written = write_and_sync(fd, beside, text);
  ::close(fd);
  if (!written) return written;
  if (::rename(beside.c_str(), path.c_str()) != 0) return file_error(path, errno);
  const std::string folder = path.substr(0, path.rfind('/'));
  const int folder_fd = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder_fd < 0) return file_error(folder, errno);
  const bool is_synced = ::fsync(folder_fd) == 0;
  ::close(folder_fd);
  if (!is_synced) return file_error(folder, EIO);
  return {};
}

Result<std::string> read_small_file(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return file_error(path, errno);
  std::string text;
  char block[4096];
  ssize_t count = 0;
  while ((count = ::read(fd, block, sizeof block)) > 0 && text.size() < kSmallFileMost)
    text.append(block, static_cast<std::size_t>(count));
  const int number = errno;
  ::close(fd);
  if (count < 0) return file_error(path, number);
  return text;
}

Result<std::optional<ReplicaExit>> read_exit(const std::string& run) {
  const auto text = read_small_file(exit_path(run));
  if (!text && text.error().code == Code::kNotFound) return std::optional<ReplicaExit>();
  if (!text) return text.error();
  REGATTA_TRY(exit, decode_replica_exit(*text));
  return std::optional<ReplicaExit>(std::move(exit));
}

Result<RunLock> RunLock::take(const std::string& run) {
  const std::string path = lock_path(run);
  const int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (fd < 0) return file_error(path, errno);
  RunLock lock(fd);
  struct flock whole = whole_file(F_WRLCK);
  if (::fcntl(fd, F_SETLK, &whole) == 0) return lock;
  if (errno == EAGAIN || errno == EACCES)
    return Error{Code::kConflict, path + ": another process holds it"};
  return file_error(path, errno);
}

Result<std::optional<pid_t>> RunLock::holder(const std::string& run) {
  const std::string path = lock_path(run);
  const int fd = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
  if (fd < 0 && errno == ENOENT) return std::optional<pid_t>();
  if (fd < 0) return file_error(path, errno);
  struct flock whole = whole_file(F_WRLCK);
  const bool is_known = ::fcntl(fd, F_GETLK, &whole) == 0;
  const int number = errno;
  ::close(fd);
  if (!is_known) return file_error(path, number);
  if (whole.l_type == F_UNLCK) return std::optional<pid_t>();
  return std::optional<pid_t>(whole.l_pid);
}

RunLock::~RunLock() {
  if (fd_ >= 0) ::close(fd_);
}

}  // namespace regatta::node_agent
