// audit/audit_files.h: the chain on disk: files of lines in one folder, each named by the number of
// its first record.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "regatta/base/core/result.h"
#include "regatta/platform/audit/audit_record.h"

namespace regatta::audit {

struct AuditFile {
  std::int64_t first = 0;
  std::string path;
};

std::string audit_file_name(std::int64_t first);
// In their order. An empty list where the folder is missing.
std::vector<AuditFile> list_audit_files(const std::string& folder);

struct AuditCheck {
  AuditHead head;
  std::int64_t first = 0;      // number of the first record; 0: there is none
  bool is_cut_line = false;    // the last file ends within a line; no reply rests on it
  std::size_t last_bytes = 0;  // of the last file, without that
};

// Checks whole files; kInvalidInput names file and record. `start`: as for AuditChain.
Result<AuditCheck> check_audit_files(const std::vector<AuditFile>& files, const AuditHead& start);

// Up to `limit` records before number `before` (0: the newest), the newest first. `user` empty: of
// all. Looks at 20,000 records at most, and says how far it came.
struct AuditPage {
  std::vector<AuditLink> links;
  std::int64_t next = 0;  // continue before this number; 0: there are no more
};
Result<AuditPage> read_audit_page(const std::string& folder, std::int64_t before, std::size_t limit,
                                  const std::string& user);

}  // namespace regatta::audit
