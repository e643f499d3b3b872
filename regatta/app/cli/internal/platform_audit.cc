#include "regatta/app/cli/internal/platform_audit.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "regatta/app/cli/internal/arguments.h"
#include "regatta/app/cli/internal/job_file.h"
#include "regatta/app/cli/internal/platform_client.h"
#include "regatta/base/core/text.h"
#include "regatta/platform/audit/audit_files.h"
#include "regatta/platform/audit/audit_record.h"

namespace regatta::cli {
namespace {

constexpr int kPageRecords = 500;

struct AuditOptions {
  ConnectionOptions connection;
  std::string user;
  std::string path;
  int limit = 50;
  bool json = false;
};

struct AuditListing {
  audit::AuditHead stored;  // in the controller's store
  std::string next;
  nlohmann::json items;
};

Result<AuditListing> get_page(PlatformClient& client, int limit, const std::string& user,
                              const std::string& after) {
  std::string target = fmt::format("/v1/audit?limit={}", limit);
  if (!user.empty()) target += "&user=" + url_text(user);
  if (!after.empty()) target += "&after=" + url_text(after);
  REGATTA_TRY(page, client.call({.target = target}));
  AuditListing listing;
  listing.next = text_in(page, "next");
  listing.items = page.value("items", nlohmann::json::array());
  const nlohmann::json stored = page.value("stored_head", nlohmann::json::object());
  listing.stored = {parse_number<std::int64_t>(text_in(stored, "number")).value_or(0),
                    text_in(stored, "hash")};
  return listing;
}

Result<int> list_audit(const AuditOptions& options) {
  REGATTA_TRY(client, PlatformClient::open(options.connection));
  nlohmann::json records = nlohmann::json::array();
  std::string after;
  do {
    const int missing = options.limit - static_cast<int>(records.size());
    REGATTA_TRY(page, get_page(client, std::min(missing, kPageRecords), options.user, after));
    records.insert(records.end(), page.items.begin(), page.items.end());
    after = page.next;
  } while (!after.empty() && static_cast<int>(records.size()) < options.limit);
  if (options.json) {
    fmt::print("{}\n", records.dump());
    return 0;
  }
  std::vector<std::vector<std::string>> rows = {
      {"record", "time", "user", "address", "action", "object", "status"}};
  for (const nlohmann::json& record : records)
    rows.push_back({std::to_string(record.value("number", 0LL)),
                    time_text(record.value("time_ms", 0LL)), printable(text_in(record, "user"), 40),
                    text_in(record, "address"), printable(text_in(record, "action"), 60),
                    printable(text_in(record, "object"), 60),
                    std::to_string(record.value("status", 0))});
  std::fputs(records.empty() ? "no records\n" : format_table(rows).c_str(), stdout);
  return 0;
}

Result<audit::AuditLink> link_of(const nlohmann::json& item) {
  audit::AuditLink link{.record = {.number = item.value("number", std::int64_t{0}),
                                   .time_ms = item.value("time_ms", std::int64_t{0}),
                                   .user = text_in(item, "user"),
                                   .token = text_in(item, "token"),
                                   .address = text_in(item, "address"),
                                   .action = text_in(item, "action"),
                                   .object = text_in(item, "object"),
                                   .status = item.value("status", 0)},
                        .previous = text_in(item, "previous"),
                        .hash = text_in(item, "hash")};
  if (link.record.number < 1) return Error{Code::kInvalidInput, "audit: a record has no number"};
  return link;
}

// All records of the controller, the oldest first.
Result<std::vector<audit::AuditLink>> get_all(PlatformClient& client, audit::AuditHead& stored) {
  std::vector<audit::AuditLink> links;
  std::string after;
  bool is_first = true;
  do {
    REGATTA_TRY(page, get_page(client, kPageRecords, "", after));
    if (std::exchange(is_first, false)) stored = page.stored;
    for (const nlohmann::json& item : page.items) {
      REGATTA_TRY(link, link_of(item));
      links.push_back(std::move(link));
    }
    after = page.next;
  } while (!after.empty());
  std::reverse(links.begin(), links.end());
  return links;
}

int print_verdict(std::int64_t first, const audit::AuditHead& head) {
  if (head.number == 0)
    fmt::print("no records\n");
  else
    fmt::print("records {} to {} are as they were written; the last has the hash {}\n", first,
               head.number, head.hash);
  return 0;
}

Result<int> verify_controller(const AuditOptions& options) {
  REGATTA_TRY(client, PlatformClient::open(options.connection));
  audit::AuditHead stored;
  REGATTA_TRY(links, get_all(client, stored));
  audit::AuditChain chain{audit::AuditHead{}};
  bool has_stored = stored.number == 0;
  for (const audit::AuditLink& link : links) {
    const Status status = chain.add(link);
    if (!status) return Error{Code::kUnavailable, "audit: " + status.error().message};
    has_stored |= link.record.number == stored.number && link.hash == stored.hash;
  }
  if (!has_stored)
    return Error{Code::kUnavailable,
                 fmt::format("audit: record {} is missing or another than the store knows; the end "
                             "was cut off or replaced",
                             stored.number)};
  return print_verdict(links.empty() ? 0 : links.front().record.number, chain.head());
}

// Files that were put away begin anywhere; those of a controller with record 1.
Result<int> verify_files(const std::string& path) {
  std::vector<audit::AuditFile> files = audit::list_audit_files(path);
  if (!std::filesystem::is_directory(path)) files = {{.first = 0, .path = path}};
  if (files.empty())
    return Error{Code::kInvalidInput, path + ": it holds no files of an audit (audit-*.jsonl)"};
  const audit::AuditHead start =
      files.front().first == 1 ? audit::AuditHead{} : audit::AuditHead{.number = -1, .hash = {}};
  const auto check = audit::check_audit_files(files, start);
  // A broken chain is no wrong input of the command.
  if (!check) {
    const bool is_input = check.error().code != Code::kInvalidInput;
    return is_input ? check.error() : Error{Code::kUnavailable, check.error().message};
  }
  return print_verdict(check->first, check->head);
}

}  // namespace

void add_platform_audit_command(CLI::App& app, int& exit_status) {
  const auto options = std::make_shared<AuditOptions>();
  const auto finish = [&exit_status](const Result<int>& done) {
    exit_status = done ? *done : report_error(done.error());
  };
  CLI::App* list = add_command(app, "audit", "List who changed what, the newest first; admins may",
                               "regatta audit --user ada", {});
  list->callback([=] {
    if (list->get_subcommands().empty()) finish(list_audit(*options));
  });
  list->add_option("--user", options->user, "Of this user alone")
      ->type_name("USER")
      ->check(not_empty());
  list->add_option("--limit", options->limit, "How many records")
      ->type_name("N")
      ->capture_default_str()
      ->check(whole_number(1, 1'000'000));
  list->add_flag("--json", options->json, "Print a JSON list of records as the API shows them");
  add_connection_options(*list, options->connection);
  CLI::App* verify = add_command(
      *list, "verify", "Check that no record was changed, removed, inserted or moved",
      "regatta audit verify /var/lib/regatta/audit", [=] {
        finish(options->path.empty() ? verify_controller(*options) : verify_files(options->path));
      });
  verify->add_option("FILE", options->path, "File or folder of records (all of the controller)")
      ->check(not_empty());
  add_connection_options(*verify, options->connection);
  list->require_subcommand(0, 1);
}

}  // namespace regatta::cli
