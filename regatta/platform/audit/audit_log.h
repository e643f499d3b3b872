// audit/audit_log.h: the audit of a running controller: records are added in the loop's thread and
// written in groups by a thread of its own; an answer waits until its record is durable.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "regatta/base/core/result.h"
#include "regatta/base/http/event_loop.h"
#include "regatta/platform/audit/audit_files.h"
#include "regatta/platform/audit/audit_record.h"

namespace regatta::audit {

struct AuditLogOptions {
  std::string folder;
  std::size_t file_bytes_max = 8 << 20;  // then the next file begins
};

// Belongs to the loop's thread.
class AuditLog {
 public:
  // Checks the last file. Where it is damaged, or ends before `known`, the chain's head that the
  // store has, the log goes on, and its first new record says so.
  static Result<std::unique_ptr<AuditLog>> open(http::EventLoop& loop, AuditLogOptions options,
                                                const AuditHead& known);
  ~AuditLog();  // writes what waits
  AuditLog(const AuditLog&) = delete;
  AuditLog& operator=(const AuditLog&) = delete;

  // Sets number and time; returns the number.
  std::int64_t add(AuditRecord record);
  // Runs `work` in the loop's thread once the record of this number is durable; at once when it is.
  void when_durable(std::int64_t number, std::function<void()> work);
  // The last record that is durable.
  const AuditHead& head() const;
  // Called after each group that has become durable.
  void on_durable(std::function<void()> handler);
  // Records cannot be written at this moment: new changes are to be refused.
  bool is_stuck() const;
  // read_audit_page() in the log's thread; `done` runs in the loop's.
  void read(std::int64_t before, std::size_t limit, std::string user,
            std::function<void(Result<AuditPage>)> done);
  // The fault of the files that open() found; empty: none.
  const std::string& damage() const;

 private:
  struct Impl;
  explicit AuditLog(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace regatta::audit
