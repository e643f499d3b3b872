#include "regatta/platform/reliability/failure_log.h"

#include <algorithm>
#include <chrono>
#include <limits>
#include <map>
#include <optional>

#include "regatta/base/core/ids.h"
#include "regatta/base/core/text.h"
#include "regatta/platform/packing/table_rows.h"
#include "regatta/platform/reliability/failure_mix.h"

namespace regatta::reliability {
namespace {

constexpr std::string_view kRowsText = "one of the first 1000000 rows; give a shorter table";
constexpr std::string_view kTimeExample = "a time such as 2017-04-09 21:36:19";

std::optional<int> digits(std::string_view text, std::size_t at, std::size_t count) {
  return at + count <= text.size() ? parse_number<int>(text.substr(at, count)) : std::nullopt;
}

// Seconds since 1970 of "2017-04-09 21:36:19".
std::optional<Seconds> parse_time(std::string_view text) {
  if (text.size() != 19 || text[4] != '-' || text[7] != '-' || text[13] != ':' || text[16] != ':')
    return std::nullopt;
  const auto year = digits(text, 0, 4);
  const auto month = digits(text, 5, 2);
  const auto day = digits(text, 8, 2);
  const auto hour = digits(text, 11, 2);
  const auto minute = digits(text, 14, 2);
  const auto second = digits(text, 17, 2);
  if (!year || !month || !day || !hour || !minute || !second) return std::nullopt;
  if (*year < 0 || *month < 0 || *day < 0) return std::nullopt;
  const std::chrono::year_month_day date(std::chrono::year(*year),
                                         std::chrono::month(static_cast<unsigned>(*month)),
                                         std::chrono::day(static_cast<unsigned>(*day)));
  if (!date.ok() || *hour < 0 || *hour > 23 || *minute < 0 || *minute > 59 || *second < 0 ||
      *second > 60)
    return std::nullopt;
  const auto days = std::chrono::sys_days(date).time_since_epoch().count();
  return Seconds{static_cast<double>(days) * kDay.value + *hour * 3600 + *minute * 60 + *second};
}

// The cage of a location such as c13-5c2s2n1: the digit after the second c.
std::optional<int> parse_cage(std::string_view location) {
  const std::size_t at = location.find('c', 1);
  if (!location.starts_with('c') || at == std::string_view::npos) return std::nullopt;
  const auto cage = digits(location, at + 1, 1);
  return cage && *cage >= 0 ? cage : std::nullopt;
}

Result<Seconds> time_of(const packing::TableRows& rows, std::string_view column) {
  const auto time = parse_time(rows.text(column));
  if (!time) return rows.wrong_value(column, kTimeExample);
  return *time;
}

// Sorts the unit's failures and joins those within a day.
void join_failures(LoggedUnit& unit) {
  std::sort(unit.stays.begin(), unit.stays.end(),
            [](const LoggedStay& a, const LoggedStay& b) { return a.start < b.start; });
  std::sort(unit.failures.begin(), unit.failures.end(),
            [](const LoggedFailure& a, const LoggedFailure& b) { return a.start < b.start; });
  std::vector<LoggedFailure> joined;
  for (const LoggedFailure& failure : unit.failures)
    if (joined.empty() || failure.start - joined.back().start > kDay) joined.push_back(failure);
  unit.failures = std::move(joined);
}

Status read_life(const packing::TableRows& rows, LoggedUnit& unit, FailureLog& log) {
  REGATTA_TRY(removed, time_of(rows, "remove"));
  log.end = std::max(log.end, removed);
  log.begin = std::min(log.begin, removed);
  const auto cage = parse_cage(rows.text("location"));
  if (!cage) return rows.wrong_value("location", "a location such as c13-5c2s2n1");
  const std::string location(rows.text("location"));
  const std::string_view event = rows.text("event");
  if (!event.empty() && event != "DBE" && event != "OTB")
    return rows.wrong_value("event", "DBE, OTB or empty");
  if (!event.empty()) unit.failures.push_back({removed, removed, location});
  if (rows.text("insert").empty()) {
    if (event.empty()) return rows.wrong_value("insert", kTimeExample);
    return {};
  }
  REGATTA_TRY(inserted, time_of(rows, "insert"));
  if (inserted > removed) return rows.wrong_value("insert", "a time before 'remove'");
  log.begin = std::min(log.begin, inserted);
  unit.stays.push_back({inserted, removed, *cage, location});
  return {};
}

}  // namespace

const LoggedStay* LoggedUnit::in_service(Seconds time) const {
  for (const LoggedFailure& failure : failures)
    if (failure.start <= time && time < failure.end) return nullptr;
  for (const LoggedStay& stay : stays)
    if (stay.start <= time && time < stay.end) return &stay;
  return nullptr;
}

int FailureLog::failures() const {
  int sum = 0;
  for (const LoggedUnit& unit : units)
    sum += static_cast<int>(unit.failures.size());
  return sum;
}

Result<FailureLog> read_gpu_lives(std::string_view text, const std::string& file) {
  REGATTA_TRY(
      rows, packing::TableRows::open(text, file, {"SN", "location", "insert", "remove", "event"}));
  FailureLog log{.begin = {std::numeric_limits<double>::infinity()}, .end = {}, .units = {}};
  std::map<std::string, LoggedUnit, std::less<>> units;
  for (int count = 0;; ++count) {
    REGATTA_TRY(is_row, rows.next());
    if (!is_row) break;
    if (count >= kLoggedRowsMax) return rows.wrong_value("SN", kRowsText);
    const std::string_view name = rows.text("SN");
    if (name.size() < 4) return rows.wrong_value("SN", "a serial number of at least 4 digits");
    const auto unit = units.try_emplace(std::string(name)).first;
    REGATTA_TRY_DO(read_life(rows, unit->second, log));
  }
  log.begin = std::min(log.begin, log.end);
  for (auto& [name, unit] : units) {
    unit.name = name;
    unit.batch = name.substr(0, 4);
    join_failures(unit);
    log.units.push_back(std::move(unit));
  }
  return log;
}

Result<FailureLog> read_server_faults(std::string_view text, const std::string& file, int servers) {
  REGATTA_TRY(rows, packing::TableRows::open(text, file, {"node", "start_d", "end_d"}));
  FailureLog log;
  log.units.resize(as_index(std::clamp(servers, 1, kLoggedRowsMax)));
  for (int count = 0;; ++count) {
    REGATTA_TRY(is_row, rows.next());
    if (!is_row) break;
    if (count >= kLoggedRowsMax) return rows.wrong_value("node", kRowsText);
    REGATTA_TRY(node, rows.number("node", {0, static_cast<int>(log.units.size()) - 1}));
    REGATTA_TRY(start, rows.real("start_d", {0, 1e6}));
    LoggedFailure failure{start * kDay, {std::numeric_limits<double>::infinity()}, {}};
    log.end = std::max(log.end, failure.start);
    if (!rows.text("end_d").empty()) {
      REGATTA_TRY(end, rows.real("end_d", {start, 1e6}));
      failure.end = end * kDay;
      log.end = std::max(log.end, failure.end);
    }
    at(log.units, node).failures.push_back(failure);
  }
  for (std::size_t i = 0; i < log.units.size(); ++i) {
    LoggedUnit& unit = log.units[i];
    unit.name = std::to_string(i);
    unit.stays = {{{}, log.end, 0, {}}};
    std::sort(unit.failures.begin(), unit.failures.end(),
              [](const LoggedFailure& a, const LoggedFailure& b) { return a.start < b.start; });
  }
  return log;
}

}  // namespace regatta::reliability
