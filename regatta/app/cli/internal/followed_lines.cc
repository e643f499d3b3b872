#include "regatta/app/cli/internal/followed_lines.h"

#include <cerrno>

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

namespace regatta::cli {
namespace {

constexpr Seconds kLook{1};

Result<os::UniqueFd> open_to_read(const std::string& path, const std::string& name) {
  // Without O_NONBLOCK a pipe would wait for its writer.
  os::UniqueFd fd(path.empty() ? ::fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 0)
                               : ::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  if (!fd) return os::errno_error(name);
  return fd;
}

// Whether a file has more than its first line, as far as a heading may reach.
bool has_lines_after_heading(int fd) {
  char part[4096];
  const ssize_t count = ::pread(fd, part, sizeof part, 0);
  if (count <= 0) return false;
  const std::string_view text(part, static_cast<std::size_t>(count));
  const std::size_t end = text.find('\n');
  return end == std::string_view::npos ? text.size() == sizeof part : end + 1 < text.size();
}

}  // namespace

Result<FollowedLines> FollowedLines::open(const std::string& path, std::size_t line_max) {
  const bool is_input = path == "-";
  FollowedLines lines(is_input ? "" : path, is_input ? "standard input" : path, line_max);
  auto fd = open_to_read(lines.path_, lines.name_);
  if (!fd)
    return Error{Code::kInvalidInput,
                 fd.error().message + "; name a file or a pipe that a collector writes"};
  lines.fd_ = std::move(*fd);
  struct stat status {};
  if (::fstat(lines.fd_.get(), &status) != 0) return os::errno_error(lines.name_);
  lines.is_file_ = S_ISREG(status.st_mode);
  if (!lines.is_file_ && !S_ISFIFO(status.st_mode) && !S_ISSOCK(status.st_mode) &&
      ::isatty(lines.fd_.get()) == 0)
    return Error{
        Code::kInvalidInput,
        lines.name_ + ": cannot be followed; name a file or a pipe that a collector writes"};
  if (lines.is_file_) {
    lines.leaves_out_lines_ = has_lines_after_heading(lines.fd_.get());
    lines.begin_at(status.st_size);
  }
  return lines;
}

void FollowedLines::begin_at(off_t place) {
  char before = '\n';
  if (place > 0 && ::pread(fd_.get(), &before, 1, place - 1) != 1) before = '\n';
  static_cast<void>(::lseek(fd_.get(), place, SEEK_SET));
  is_partial_ = before != '\n';
  static_cast<void>(lines_.take_rest());
}

// Another file may have taken its name, or its writer has begun anew.
Status FollowedLines::look_at_file(Seconds now) {
  if (!is_file_ || now < next_look_) return {};
  next_look_ = now + kLook;
  struct stat own {};
  if (::fstat(fd_.get(), &own) != 0) return os::errno_error(name_);
  if (::lseek(fd_.get(), 0, SEEK_CUR) > own.st_size) begin_at(0);
  struct stat named {};
  if (path_.empty() || ::stat(path_.c_str(), &named) != 0 || !S_ISREG(named.st_mode)) return {};
  if (named.st_ino == own.st_ino && named.st_dev == own.st_dev) return {};
  const bool has_rest = ::lseek(fd_.get(), 0, SEEK_CUR) < own.st_size;
  if (has_rest) return {};
  if (auto fd = open_to_read(path_, name_)) {
    fd_ = std::move(*fd);
    begin_at(0);
  }
  return {};
}

Status FollowedLines::read(const std::function<void(std::string_view line)>& visit, Seconds now) {
  if (is_over_) return {};
  REGATTA_TRY_DO(look_at_file(now));
  pollfd wait{.fd = fd_.get(), .events = POLLIN, .revents = 0};
  if (::poll(&wait, 1, 0) <= 0) return {};
  char part[65'536];
  const ssize_t count = ::read(fd_.get(), part, sizeof part);
  if (count < 0 && errno != EINTR && errno != EAGAIN) return os::errno_error(name_);
  // A named pipe may get another writer.
  if (count == 0 && path_.empty() && !is_file_) is_over_ = true;
  if (count <= 0) return {};
  lines_.append(std::string_view(part, static_cast<std::size_t>(count)));
  while (const auto line = lines_.next()) {
    const bool is_rest = is_partial_;
    is_partial_ = lines_.is_too_long(*line);
    if (!is_rest) visit(*line);
  }
  return {};
}

}  // namespace regatta::cli
