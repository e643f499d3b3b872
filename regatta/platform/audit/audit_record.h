// audit/audit_record.h: one change and its result as a line, and the chain that its hash makes with
// all lines before it. Source: Haber and Stornetta, Journal of Cryptology 3, 1991. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "regatta/base/core/result.h"

namespace regatta::audit {

// Texts are ASCII without control characters: audit_text() makes them so.
struct AuditRecord {
  std::int64_t number = 0;   // from 1, without gaps
  std::int64_t time_ms = 0;  // Unix time
  std::string user;          // empty: nobody that is known
  std::string token;         // id of the token or session
  std::string address;
  std::string action;  // "POST /v1/jobs/{job}/cancel"
  std::string object;  // hello-17
  int status = 0;      // of HTTP
};

// The place of a record in its chain: the hash of the record before it, and its own.
struct AuditLink {
  AuditRecord record;
  std::string previous;
  std::string hash;
};

// The last record of a chain; 0 and the hash before the first one when there is none.
struct AuditHead {
  std::int64_t number = 0;
  std::string hash = std::string(64, '0');
};

// Control characters and bytes beyond ASCII become '?', and more than `longest` bytes are left out:
// no name forges a line.
std::string audit_text(std::string_view text, std::size_t longest = 200);

// SHA-256 in hex over the hash of the record before and this record, as the line has them.
AuditLink link_record(AuditRecord record, std::string_view previous);
// JSON without a newline.
std::string audit_line(const AuditLink& link);
// kInvalidInput where the line is none that audit_line() writes, to the byte.
Result<AuditLink> parse_audit_line(std::string_view line);

// Checks links one after another.
class AuditChain {
 public:
  // `head`: what the chain continues. Number -1: the first link may be any, as in a file whose
  // predecessors were put away.
  explicit AuditChain(AuditHead head) : head_(std::move(head)) {}

  // kInvalidInput names the record that was changed, removed, inserted or moved.
  Status add(const AuditLink& link);
  const AuditHead& head() const { return head_; }

 private:
  AuditHead head_;
};

}  // namespace regatta::audit
