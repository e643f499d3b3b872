#include "regatta/platform/audit/audit_record.h"

#include <vector>

#include <gmock/gmock.h>

namespace regatta::audit {
namespace {

using testing::HasSubstr;
using testing::Not;

std::vector<AuditLink> chain_of(int count) {
  std::vector<AuditLink> links;
  AuditHead head;
  for (int i = 1; i <= count; ++i) {
    links.push_back(link_record({.number = i,
                                 .time_ms = 1000 + i,
                                 .user = "ada",
                                 .token = "t1",
                                 .address = "10.0.0.1",
                                 .action = "POST /v1/jobs",
                                 .object = "job-" + std::to_string(i),
                                 .status = 201},
                                head.hash));
    head = {i, links.back().hash};
  }
  return links;
}

// The first error of the chain; empty: there is none.
std::string problem_of(const std::vector<AuditLink>& links) {
  AuditChain chain{AuditHead{}};
  for (const AuditLink& link : links)
    if (const Status status = chain.add(link); !status) return status.error().message;
  return "";
}

TEST(AuditChain, HoldsForWhatWasWritten) {
  EXPECT_EQ(problem_of(chain_of(5)), "");
}

TEST(AuditChain, NamesARecordThatWasChanged) {
  std::vector<AuditLink> links = chain_of(5);
  links[2].record.user = "eve";
  EXPECT_EQ(problem_of(links), "record 3: it was changed: its hash is another");
  // With a hash that fits it, the one after it does not.
  links[2] = link_record(links[2].record, links[2].previous);
  EXPECT_THAT(problem_of(links), HasSubstr("record 4: it does not continue record 3"));
}

TEST(AuditChain, NamesRecordsThatWereRemovedInsertedOrMoved) {
  std::vector<AuditLink> removed = chain_of(5);
  removed.erase(removed.begin() + 1);
  EXPECT_EQ(problem_of(removed), "record 3: record 2 before it was removed");
  std::vector<AuditLink> first = chain_of(5);
  first.erase(first.begin(), first.begin() + 2);
  EXPECT_EQ(problem_of(first), "record 3: records 1 to 2 before it were removed");
  std::vector<AuditLink> inserted = chain_of(5);
  inserted.insert(inserted.begin() + 2, link_record(inserted[1].record, inserted[1].hash));
  EXPECT_THAT(problem_of(inserted), HasSubstr("record 2: it stands after record 2"));
  std::vector<AuditLink> moved = chain_of(5);
  std::swap(moved[1], moved[2]);
  EXPECT_THAT(problem_of(moved), HasSubstr("record 3: record 2 before it was removed"));
}

TEST(AuditLine, ReadsWhatItWritesToTheByte) {
  const AuditLink link = link_record({.number = 7, .action = "a\"b\\c", .object = "{}"}, "00");
  const std::string line = audit_line(link);
  EXPECT_EQ(audit_line(*parse_audit_line(line)), line);
  EXPECT_FALSE(parse_audit_line(line + " "));
  EXPECT_FALSE(parse_audit_line(line.substr(0, line.size() - 1) + R"(,"more":1})"));
  EXPECT_FALSE(parse_audit_line(""));
  EXPECT_FALSE(parse_audit_line("{}"));
}

TEST(AuditText, LeavesNothingThatForgesALine) {
  const std::string text = audit_text("a\n{\"number\":9}\r\x1b[2J\xff\x7f");
  EXPECT_EQ(text, "a?{\"number\":9}??[2J??");
  EXPECT_THAT(audit_line(link_record({.object = text}, "")), Not(HasSubstr("\n")));
  EXPECT_EQ(audit_text(std::string(1000, 'x')).size(), 200U);
}

}  // namespace
}  // namespace regatta::audit
