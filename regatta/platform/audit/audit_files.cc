#include "regatta/platform/audit/audit_files.h"

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "regatta/base/core/text.h"
#include "regatta/base/os/file.h"

namespace regatta::audit {
namespace {

constexpr std::string_view kPrefix = "audit-";
constexpr std::string_view kSuffix = ".jsonl";
constexpr int kScannedMax = 20'000;

// Whole lines, without a rest that has no end.
std::vector<std::string_view> lines_of(std::string_view text) {
  std::vector<std::string_view> lines;
  while (true) {
    const std::size_t end = text.find('\n');
    if (end == std::string_view::npos) return lines;
    lines.push_back(text.substr(0, end));
    text.remove_prefix(end + 1);
  }
}

}  // namespace

std::string audit_file_name(std::int64_t first) {
  return fmt::format("{}{:012}{}", kPrefix, first, kSuffix);
}

std::vector<AuditFile> list_audit_files(const std::string& folder) {
  std::vector<AuditFile> files;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with(kPrefix) || !name.ends_with(kSuffix)) continue;
    const std::string_view middle = std::string_view(name).substr(
        kPrefix.size(), name.size() - kPrefix.size() - kSuffix.size());
    if (const auto first = parse_number<std::int64_t>(middle))
      files.push_back({*first, entry.path().string()});
  }
  std::sort(files.begin(), files.end(),
            [](const AuditFile& one, const AuditFile& other) { return one.first < other.first; });
  return files;
}

Result<AuditCheck> check_audit_files(const std::vector<AuditFile>& files, const AuditHead& start) {
  AuditCheck check;
  AuditChain chain(start);
  for (const AuditFile& file : files) {
    REGATTA_TRY(text, os::read_file(file.path));
    const auto named = [&](const Error& error) {
      return Error{error.code, fmt::format("{}: {}", file.path, error.message)};
    };
    const std::size_t whole = text.rfind('\n') == std::string::npos ? 0 : text.rfind('\n') + 1;
    check.is_cut_line = whole < text.size();
    check.last_bytes = whole;
    if (check.is_cut_line && &file != &files.back())
      return named({Code::kInvalidInput, "its end was cut off"});
    for (const std::string_view line : lines_of(text)) {
      const auto link = parse_audit_line(line);
      if (!link)
        return named(
            {Code::kInvalidInput,
             fmt::format("after record {}: {}", std::max<std::int64_t>(chain.head().number, 0),
                         link.error().message)});
      if (check.first == 0) check.first = link->record.number;
      if (const Status status = chain.add(*link); !status) return named(status.error());
    }
  }
  check.head = chain.head();
  if (check.head.number < 0) check.head = {};
  return check;
}

Result<AuditPage> read_audit_page(const std::string& folder, std::int64_t before, std::size_t limit,
                                  const std::string& user) {
  AuditPage page;
  const std::vector<AuditFile> files = list_audit_files(folder);
  int scanned = 0;
  for (auto file = files.rbegin(); file != files.rend(); ++file) {
    if (before > 0 && file->first >= before) continue;
    REGATTA_TRY(text, os::read_file(file->path));
    const std::vector<std::string_view> lines = lines_of(text);
    for (auto line = lines.rbegin(); line != lines.rend(); ++line) {
      // A damaged line is for `regatta audit verify` to name; the page shows the others.
      const auto link = parse_audit_line(*line);
      if (!link || (before > 0 && link->record.number >= before)) continue;
      if (page.links.size() == limit || ++scanned > kScannedMax) return page;
      page.next = link->record.number;
      if (user.empty() || link->record.user == user) page.links.push_back(*link);
    }
  }
  page.next = 0;
  return page;
}

}  // namespace regatta::audit
