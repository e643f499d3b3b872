// node_agent/internal/journal_file.h: the journal of an agent on disk: a line for each entry, with
// its checksum.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "regatta/base/core/result.h"
#include "regatta/base/os/unique_fd.h"
#include "regatta/platform/node_agent/agent_core.h"

namespace regatta::node_agent {

// The text of a journal, read. A line that a crash cut off at the end does not count.
struct JournalContent {
  std::string id;       // of the file, random
  std::string boot_id;  // of the latest boot that wrote to it
  std::vector<JournalEntry> entries;
  std::size_t whole_bytes = 0;  // up to the line that was cut off
};

// kInvalidInput names the line that is damaged in front of others that are not.
Result<JournalContent> parse_journal(std::string_view text, const std::string& name);
std::string format_journal(const JournalContent& content);

class JournalFile {
 public:
  // Makes the file where it is missing; notes `boot_id`.
  static Result<JournalFile> open(const std::string& path, const std::string& boot_id);

  const std::string& id() const { return id_; }
  // Whether an earlier boot wrote it last: nothing that it started runs any more.
  bool is_of_earlier_boot() const { return is_of_earlier_boot_; }
  // As the file had them when it was opened; empty after the first call.
  std::vector<JournalEntry> take_entries();

  // Writes the entries with one fsync; they are on disk when it returns. Replaces the file by a
  // shorter one when most of its lines do not count any more.
  Status append(std::span<const JournalEntry> entries);

 private:
  JournalFile() = default;
  Status compact();

  std::string path_;
  std::string id_;
  std::string boot_id_;
  bool is_of_earlier_boot_ = false;
  std::vector<JournalEntry> entries_;
  os::UniqueFd fd_;
  std::size_t lines_ = 0;
  std::size_t lines_kept_ = 0;  // by the latest compaction
};

}  // namespace regatta::node_agent
