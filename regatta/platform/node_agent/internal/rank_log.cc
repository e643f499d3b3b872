#include "regatta/platform/node_agent/internal/rank_log.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "regatta/base/core/text.h"

namespace regatta::node_agent {
namespace {

constexpr std::size_t kSegmentsKept = 2;
constexpr std::int64_t kBytesLeast = 4096;  // a notice fits

// log.RANK.PLACE
std::string segment_path(const std::string& run, int rank, std::int64_t begin) {
  return run + "/log." + std::to_string(rank) + "." + std::to_string(begin);
}

}  // namespace

std::vector<LogSegment> log_segments(const std::string& run, int rank) {
  std::vector<LogSegment> segments;
  DIR* const folder = ::opendir(run.c_str());
  if (folder == nullptr) return segments;
  const std::string prefix = "log." + std::to_string(rank) + ".";
  while (const dirent* const entry = ::readdir(folder)) {
    const std::string_view name = entry->d_name;
    if (!name.starts_with(prefix)) continue;
    const auto begin = parse_number<std::int64_t>(name.substr(prefix.size()));
    if (!begin) continue;
    LogSegment segment{.path = run + "/" + entry->d_name, .begin = *begin, .size = 0};
    struct stat state {};
    if (::stat(segment.path.c_str(), &state) == 0) segment.size = state.st_size;
    segments.push_back(std::move(segment));
  }
  ::closedir(folder);
  std::sort(segments.begin(), segments.end(),
            [](const LogSegment& a, const LogSegment& b) { return a.begin < b.begin; });
  return segments;
}

Result<LogBytes> read_log(const std::string& run, int rank, std::int64_t offset, std::size_t most) {
  LogBytes bytes{.offset = offset, .data = {}};
  for (const LogSegment& segment : log_segments(run, rank)) {
    if (offset >= segment.begin + segment.size) continue;
    bytes.offset = std::max(offset, segment.begin);
    const int fd = ::open(segment.path.c_str(), O_RDONLY | O_CLOEXEC);
    if (fd < 0) continue;  // it was removed meanwhile
    const auto left = static_cast<std::size_t>(segment.begin + segment.size - bytes.offset);
    bytes.data.resize(std::min(most, left));
    const ssize_t count =
        ::pread(fd, bytes.data.data(), bytes.data.size(), bytes.offset - segment.begin);
    const int number = errno;
    ::close(fd);
    if (count < 0) return Error{Code::kUnavailable, segment.path + ": " + std::strerror(number)};
    bytes.data.resize(static_cast<std::size_t>(count));
    return bytes;
  }
  return bytes;
}

RankLogWriter::RankLogWriter(std::string run, int rank, std::int64_t bytes_max)
    : run_(std::move(run)), rank_(rank), bytes_max_(std::max(bytes_max, kBytesLeast)) {
  open_next();
}

RankLogWriter::RankLogWriter(RankLogWriter&& other) noexcept
    : run_(std::move(other.run_)),
      rank_(other.rank_),
      bytes_max_(other.bytes_max_),
      fd_(std::exchange(other.fd_, -1)),
      place_(other.place_),
      size_(other.size_),
      dropped_(other.dropped_),
      kept_(std::move(other.kept_)) {}

RankLogWriter::~RankLogWriter() {
  if (fd_ >= 0) ::close(fd_);
}

void RankLogWriter::open_next() {
  if (fd_ >= 0) {
    ::close(fd_);
    kept_.back().size = size_;
  }
  while (kept_.size() >= kSegmentsKept) {
    ::unlink(kept_.front().path.c_str());
    dropped_ += kept_.front().size;
    kept_.erase(kept_.begin());
  }
  LogSegment segment{.path = segment_path(run_, rank_, place_), .begin = place_, .size = 0};
  fd_ = ::open(segment.path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  size_ = 0;
  if (fd_ < 0) return;
  kept_.push_back(std::move(segment));
  if (dropped_ == 0) return;
  const std::string notice =
      "[regatta: " + std::to_string(dropped_) + " bytes of this log were dropped before]\n";
  const ssize_t count = ::write(fd_, notice.data(), notice.size());
  if (count > 0) size_ = count;
  place_ += size_;
}

void RankLogWriter::write(std::string_view bytes) {
  while (!bytes.empty()) {
    if (fd_ < 0 || size_ >= bytes_max_) open_next();
    const std::size_t room =
        static_cast<std::size_t>(std::max<std::int64_t>(bytes_max_ - size_, 1));
    const ssize_t count = fd_ < 0 ? -1 : ::write(fd_, bytes.data(), std::min(room, bytes.size()));
    if (count <= 0) {
      dropped_ += static_cast<std::int64_t>(bytes.size());
      return;
    }
    size_ += count;
    place_ += count;
    bytes.remove_prefix(static_cast<std::size_t>(count));
  }
}

}  // namespace regatta::node_agent
