#include "regatta/platform/audit/audit_record.h"

#include <utility>

#include <fmt/format.h>

#include "regatta/base/core/json.h"
#include "regatta/base/core/yaml_map.h"
#include "regatta/platform/identity/secret.h"

namespace regatta::audit {
namespace {

void append_text(std::string& out, std::string_view key, std::string_view text) {
  fmt::format_to(std::back_inserter(out), R"(,"{}":)", key);
  append_json_quoted(text, out);
}

// The line up to the hash.
std::string hashed_part(const AuditRecord& record, std::string_view previous) {
  std::string out = fmt::format(R"({{"number":{},"time_ms":{})", record.number, record.time_ms);
  append_text(out, "user", record.user);
  append_text(out, "token", record.token);
  append_text(out, "address", record.address);
  append_text(out, "action", record.action);
  append_text(out, "object", record.object);
  fmt::format_to(std::back_inserter(out), R"(,"status":{})", record.status);
  append_text(out, "previous", previous);
  return out;
}

}  // namespace

std::string audit_text(std::string_view text, std::size_t longest) {
  std::string made(text.substr(0, longest));
  for (char& letter : made)
    if (static_cast<unsigned char>(letter) < ' ' || static_cast<unsigned char>(letter) > '~')
      letter = '?';
  return made;
}

AuditLink link_record(AuditRecord record, std::string_view previous) {
  std::string hash = identity::secret_hash(hashed_part(record, previous));
  return {std::move(record), std::string(previous), std::move(hash)};
}

std::string audit_line(const AuditLink& link) {
  return fmt::format(R"({},"hash":"{}"}})", hashed_part(link.record, link.previous), link.hash);
}

Result<AuditLink> parse_audit_line(std::string_view line) {
  REGATTA_TRY(root, JsonReader::parse(line, "audit"));
  AuditLink link;
  AuditRecord& record = link.record;
  root.read("number", record.number);
  root.read("time_ms", record.time_ms);
  root.read("user", record.user);
  root.read("token", record.token);
  root.read("address", record.address);
  root.read("action", record.action);
  root.read("object", record.object);
  root.read("status", record.status);
  root.read("previous", link.previous);
  root.read("hash", link.hash);
  REGATTA_TRY(read, root.finish(std::move(link)));
  if (audit_line(read) != line)
    return Error{Code::kInvalidInput,
                 fmt::format("record {}: it was changed: the line has more than a record",
                             read.record.number)};
  return read;
}

Status AuditChain::add(const AuditLink& link) {
  const std::int64_t number = link.record.number;
  const auto wrong = [&](std::string problem) {
    return Error{Code::kInvalidInput, fmt::format("record {}: {}", number, problem)};
  };
  if (link_record(link.record, link.previous).hash != link.hash)
    return wrong("it was changed: its hash is another");
  if (head_.number >= 0) {
    if (number <= head_.number)
      return wrong(
          fmt::format("it stands after record {}: it was moved or inserted", head_.number));
    if (number > head_.number + 1)
      return wrong(number == head_.number + 2
                       ? fmt::format("record {} before it was removed", number - 1)
                       : fmt::format("records {} to {} before it were removed", head_.number + 1,
                                     number - 1));
    if (link.previous != head_.hash)
      return wrong(
          fmt::format("it does not continue record {}: one of them was inserted or "
                      "replaced",
                      head_.number));
  }
  head_ = {number, link.hash};
  return {};
}

}  // namespace regatta::audit
