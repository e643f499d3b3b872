#include "regatta/platform/reliability/failure_mix.h"

#include <algorithm>
#include <numeric>

#include <fmt/format.h>

#include "regatta/platform/packing/table_rows.h"

namespace regatta::reliability {
namespace {

constexpr char kQuotedComma = '\x1f';

// Lines without quotes, as TableRows reads them; a comma in quotes becomes kQuotedComma.
std::string without_quotes(std::string_view text) {
  std::string plain;
  plain.reserve(text.size());
  bool quoted = false;
  for (const char letter : text) {
    if (letter == '\n') quoted = false;
    if (letter == '"')
      quoted = !quoted;
    else
      plain += quoted && letter == ',' ? kQuotedComma : letter;
  }
  return plain;
}

}  // namespace

FailureEffect usual_effect(FailureClass failure_class) {
  switch (failure_class) {
    case FailureClass::kGpu:
    case FailureClass::kHost:
      return FailureEffect::kRelapse;
    case FailureClass::kNetwork:
    case FailureClass::kStorage:
    case FailureClass::kFacility:
      return FailureEffect::kRepair;
    case FailureClass::kSoftware:
    case FailureClass::kUnknown:
      break;
  }
  return FailureEffect::kRestart;
}

int FailureMix::count() const {
  return std::accumulate(causes.begin(), causes.end(), 0,
                         [](int sum, const FailureCause& cause) { return sum + cause.count; });
}

FailureRate FailureMix::per_device() const {
  FailureRate sum{};
  for (const FailureCause& cause : causes)
    sum += cause.per_device;
  return sum;
}

Result<std::vector<FailureMix>> read_failure_mixes(std::string_view text, const std::string& file) {
  const std::string plain = without_quotes(text);
  REGATTA_TRY(rows,
              packing::TableRows::open(
                  plain, file, {"source", "population", "cause", "class", "count", "share_pct"}));
  std::vector<FailureMix> mixes;
  for (;;) {
    REGATTA_TRY(is_row, rows.next());
    if (!is_row) return mixes;
    const std::string source(rows.text("source"));
    if (source.empty()) return rows.wrong_value("source", "the name of a source");
    if (mixes.empty() || mixes.back().source != source) {
      mixes.push_back({source, std::string(rows.text("population")), {}});
      std::replace(mixes.back().population.begin(), mixes.back().population.end(), kQuotedComma,
                   ',');
    }
    FailureCause cause;
    cause.name = std::string(rows.text("cause"));
    std::replace(cause.name.begin(), cause.name.end(), kQuotedComma, ',');
    const auto known = parse_enum<FailureClass>(kFailureClassNames, rows.text("class"));
    if (!known)
      return rows.wrong_value("class",
                              "gpu, host, network, storage, software, facility or unknown");
    cause.failure_class = *known;
    cause.effect = usual_effect(*known);
    if (!rows.text("count").empty()) {
      REGATTA_TRY(count, rows.number("count", {1, 1'000'000'000}));
      cause.count = count;
    }
    if (!rows.text("share_pct").empty()) {
      REGATTA_TRY(percent, rows.real("share_pct", {0, 100}));
      cause.share = percent / 100;
    }
    mixes.back().causes.push_back(std::move(cause));
  }
}

Result<FailureMix> find_failure_mix(const std::vector<FailureMix>& mixes,
                                    const std::string& source) {
  std::vector<std::string> known;
  for (const FailureMix& mix : mixes) {
    if (mix.source == source) return mix;
    known.push_back(mix.source);
  }
  return Error{Code::kNotFound, fmt::format("no failure mix '{}'; there are {}",
                                            printable(source, 40), shortened_list(known, 20))};
}

Result<FailureMix> with_rates(FailureMix mix, int devices, Seconds time) {
  if (devices < 1 || !(time.value > 0))
    return Error{Code::kInvalidInput,
                 fmt::format("failure mix {}: {} devices in {} s; give a positive number of each",
                             mix.source, devices, time.value)};
  for (FailureCause& cause : mix.causes) {
    if (cause.count == 0)
      return Error{Code::kInvalidInput,
                   fmt::format("failure mix {}: cause '{}' has no count; take a mix with counts",
                               mix.source, printable(cause.name, 40))};
    cause.per_device = rate_of(static_cast<double>(cause.count) / devices, time);
  }
  return mix;
}

}  // namespace regatta::reliability
