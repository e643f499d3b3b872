#include "regatta/platform/node_agent/internal/journal_file.h"

#include <array>
#include <cerrno>
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <random>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include "regatta/base/core/text.h"
#include "regatta/base/os/file.h"
#include "regatta/platform/node_agent/internal/run_folder.h"

namespace regatta::node_agent {
namespace {

constexpr std::string_view kHead = "journal 1";
constexpr std::size_t kLinesLeast = 1024;  // before a compaction is worth it

// CRC-32 with the reflected polynomial 0xedb88320. Source: ISO 3309.
std::uint32_t checksum(std::string_view text) {
  static const auto table = [] {
    std::array<std::uint32_t, 256> made{};
    for (std::uint32_t i = 0; i < 256; ++i) {
      std::uint32_t value = i;
      for (int bit = 0; bit < 8; ++bit)
        value = (value >> 1) ^ ((value & 1U) != 0 ? 0xedb88320U : 0U);
      made[i] = value;
    }
    return made;
  }();
  std::uint32_t crc = 0xffffffffU;
  for (const char letter : text)
    crc = (crc >> 8) ^ table[(crc ^ static_cast<unsigned char>(letter)) & 0xffU];
  return crc ^ 0xffffffffU;
}

std::string line_of(std::string_view text) {
  return fmt::format("{:08x} {}\n", checksum(text), text);
}

// The lease in ms stands in the line only where it is another than the usual one, so that an agent
// of before reads the rest; 0: none.
std::string entry_line(const JournalEntry& entry) {
  std::string text = fmt::format("entry {} {} {} {} {} {} {} {}", entry.key.job, entry.key.attempt,
                                 entry.key.replica, entry.fence, static_cast<int>(entry.phase),
                                 entry.exit_status, entry.signal, entry.is_node_fault ? 1 : 0);
  if (entry.lease != kFirstLease)
    text += fmt::format(" {}", std::isinf(entry.lease.value)
                                   ? 0
                                   : static_cast<std::int64_t>(entry.lease.value * 1000));
  return line_of(text);
}

std::string head_lines(const std::string& id, const std::string& boot_id) {
  return line_of(fmt::format("{} {}", kHead, id)) + line_of("boot " + boot_id);
}

// The text of a line whose checksum is right.
std::optional<std::string_view> checked(std::string_view line) {
  if (line.size() < 9 || line[8] != ' ') return std::nullopt;
  const auto sum = parse_number<std::uint32_t>(line.substr(0, 8), 16);
  const std::string_view text = line.substr(9);
  if (!sum || *sum != checksum(text)) return std::nullopt;
  return text;
}

std::optional<JournalEntry> parse_entry(const std::vector<std::string>& words) {
  if (words.size() != 9 && words.size() != 10) return std::nullopt;
  std::array<std::int64_t, 9> numbers{};
  for (std::size_t i = 0; i + 1 < words.size(); ++i) {
    const auto number = parse_number<std::int64_t>(words[i + 1]);
    if (!number || *number < 0) return std::nullopt;
    numbers[i] = *number;
  }
  if (numbers[4] > static_cast<int>(EntryPhase::kForgotten)) return std::nullopt;
  Seconds lease = kFirstLease;
  if (words.size() == 10)
    lease = Seconds{numbers[8] == 0 ? std::numeric_limits<double>::infinity()
                                    : static_cast<double>(numbers[8]) / 1000};
  return JournalEntry{.key = {.job = numbers[0],
                              .attempt = static_cast<int>(numbers[1]),
                              .replica = static_cast<int>(numbers[2])},
                      .fence = numbers[3],
                      .phase = static_cast<EntryPhase>(numbers[4]),
                      .exit_status = static_cast<int>(numbers[5]),
                      .signal = static_cast<int>(numbers[6]),
                      .is_node_fault = numbers[7] != 0,
                      .lease = lease};
}

// Takes one line into `content`; false when it is not one that this version writes.
bool take_line(std::string_view text, std::size_t number, JournalContent& content) {
  const std::vector<std::string> words = split(text, ' ');
  if (number == 1) {
    if (!text.starts_with(kHead) || words.size() != 3) return false;
    content.id = words[2];
    return true;
  }
  if (words[0] == "boot" && words.size() == 2) {
    content.boot_id = words[1];
    return true;
  }
  const auto entry = words[0] == "entry" ? parse_entry(words) : std::nullopt;
  if (entry) content.entries.push_back(*entry);
  return entry.has_value();
}

std::string random_id() {
  std::random_device device;
  return fmt::format("{:08x}{:08x}{:08x}{:08x}", device(), device(), device(), device());
}

Status write_whole(int fd, std::string_view text, const std::string& path) {
  while (!text.empty()) {
    const ssize_t count = ::write(fd, text.data(), text.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return os::errno_error(path);
    text.remove_prefix(static_cast<std::size_t>(count));
  }
  if (::fdatasync(fd) != 0) return os::errno_error(path);
  return {};
}

}  // namespace

Result<JournalContent> parse_journal(std::string_view text, const std::string& name) {
  JournalContent content;
  std::size_t begin = 0;
  std::size_t damaged = 0;  // the first line that is
  for (std::size_t number = 1; begin < text.size(); ++number) {
    const std::size_t end = text.find('\n', begin);
    if (end == std::string_view::npos) break;  // cut off
    const auto line = checked(text.substr(begin, end - begin));
    begin = end + 1;
    if (!line) {
      if (damaged == 0) damaged = number;
      continue;
    }
    if (damaged != 0 || !take_line(*line, number, content))
      return Error{Code::kInvalidInput,
                   fmt::format("{}: line {} is damaged; look after the disk, make sure that no "
                               "replica runs on this server, and move the file away",
                               name, damaged != 0 ? damaged : number)};
    content.whole_bytes = begin;
  }
  return content;
}

std::string format_journal(const JournalContent& content) {
  std::string text = head_lines(content.id, content.boot_id);
  for (const JournalEntry& entry : content.entries)
    text += entry_line(entry);
  return text;
}

Result<JournalFile> JournalFile::open(const std::string& path, const std::string& boot_id) {
  JournalFile file;
  file.path_ = path;
  file.boot_id_ = boot_id;
  JournalContent content;
  const auto text = os::read_file(path);
  if (text) {
    REGATTA_TRY(parsed, parse_journal(*text, path));
    content = std::move(parsed);
  } else if (text.error().code != Code::kNotFound) {
    return text.error();
  }
  file.id_ = content.id.empty() ? random_id() : content.id;
  file.is_of_earlier_boot_ = !content.boot_id.empty() && content.boot_id != boot_id;
  file.entries_ = compacted(content.entries);
  REGATTA_TRY_DO(file.compact());
  return file;
}

std::vector<JournalEntry> JournalFile::take_entries() {
  return std::exchange(entries_, {});
}

// Writes `entries_`, all that counts, to a new file.
Status JournalFile::compact() {
  const JournalContent content{
      .id = id_, .boot_id = boot_id_, .entries = entries_, .whole_bytes = 0};
  REGATTA_TRY_DO(write_durably(path_, format_journal(content)));
  fd_.reset(::open(path_.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC));
  if (!fd_) return os::errno_error(path_);
  lines_kept_ = entries_.size();
  lines_ = lines_kept_;
  return {};
}

Status JournalFile::append(std::span<const JournalEntry> entries) {
  if (entries.empty()) return {};
  std::string lines;
  for (const JournalEntry& entry : entries)
    lines += entry_line(entry);
  REGATTA_TRY_DO(write_whole(fd_.get(), lines, path_));
  lines_ += entries.size();
  if (lines_ < kLinesLeast + 2 * lines_kept_) return {};
  REGATTA_TRY(text, os::read_file(path_));
  REGATTA_TRY(content, parse_journal(text, path_));
  entries_ = compacted(content.entries);
  Status status = compact();
  entries_.clear();
  return status;
}

}  // namespace regatta::node_agent
