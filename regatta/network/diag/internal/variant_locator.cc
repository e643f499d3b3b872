#include "regatta/network/diag/internal/variant_locator.h"

#include <algorithm>
#include <cmath>

#include "regatta/network/diag/internal/explain.h"
#include "regatta/network/diag/internal/path_crossing.h"
#include "regatta/network/diag/internal/path_tally.h"

namespace regatta::diag {
namespace {

constexpr Window kCyclesCounted = 24;
// Windows after a cycle until it counts: a prober reports late answers with the next cycle.
constexpr Window kSettles = kWindowsPerCycle + 4;
constexpr Window kRecent = 5;  // cycles in which packets have to cross a culprit
constexpr Seconds kTriedAgain{60};

// One packet of a path in a cycle, and nothing lost by chance: less is needed than of probes.
ExplainOptions options_of_variants(ExplainOptions options) {
  options.background = 1e-3;
  options.windows_black_hole = 2;
  options.windows_some_black_hole = 4;
  options.windows_apart = 2;
  return options;
}

}  // namespace

VariantLocator::VariantLocator(const topo::Graph& graph, const fabric::Paths& paths,
                               Symptom symptom, const LocatorOptions& options)
    : graph_(graph),
      paths_(paths),
      symptom_(symptom),
      options_(options),
      cycle_length_(kWindowsPerCycle * options.window),
      ended_faults_(graph),
      probes_(paths.size() / 2),
      cells_(kSlots * probes_),
      counted_(kSlots * paths.size()) {
  options_.explain = options_of_variants(options.explain);
}

// Whether the cycle is neither counted nor far in the future.
bool VariantLocator::makes_room(Window cycle) {
  constexpr auto kMost = static_cast<Window>(kSlots) / 2;
  if (newest_ < 0) {
    newest_ = cycle - 1;
    first_ = cycle;
    counted_until_ = cycle - 1;
  }
  if (cycle <= counted_until_ || cycle > counted_until_ + kMost) return false;
  for (newest_ = std::max(newest_, cycle - Window{kSlots}); newest_ < cycle; ++newest_) {
    const std::size_t next = slot(newest_ + 1);
    std::fill_n(cells_.begin() + static_cast<std::ptrdiff_t>(next * probes_), probes_, Cell());
  }
  return true;
}

void VariantLocator::add(const VariantReport& report) {
  if (report.cycle < 0 || !makes_room(report.cycle)) return;
  Cell* const cells = &cells_[slot(report.cycle) * probes_];
  for (const SentCount& one : report.sent)
    if (one.probe < probes_) {
      Cell& cell = cells[one.probe];
      cell.sent = one.sent > 0 ? 1 : 0;
      cell.answered = std::max<std::uint8_t>(cell.answered, one.answered > 0 ? 1 : 0);
    }
  for (const ArrivedCount& one : report.arrived)
    if (one.probe < probes_) cells[one.probe].arrived = one.arrived > 0 ? 1 : 0;
}

void VariantLocator::count_cycle(Window cycle, const ProbeWindows& probes,
                                 const IsPlanned& is_planned) {
  Counted* const counted = &counted_[slot(cycle) * paths_.size()];
  std::fill_n(counted, paths_.size(), Counted());
  if (cycle > newest_) return;
  const Window first = cycle * kWindowsPerCycle;
  const auto probes_get_through = [&](std::uint32_t probe) {
    int clean = 0;
    for (Window window = first; window < first + kWindowsPerCycle; ++window) {
      if (!probes.is_in_memory(window)) continue;
      const ProbeWindows::Cell& one = probes.cell(probe, window);
      clean += one.sent != ProbeWindows::kUnknown && !one.is_lossy() ? 1 : 0;
    }
    return clean == kWindowsPerCycle;
  };
  for (std::uint32_t probe = 0; probe < probes_; ++probe) {
    const Cell& cell = cells_[slot(cycle) * probes_ + probe];
    if (cell.sent != 1 || (cell.answered == 0 && cell.arrived == kUnknown)) continue;
    const bool is_lost = cell.answered == 0;
    if (!is_planned(2 * probe) || (is_lost && !probes_get_through(probe))) continue;
    const bool has_arrived = !is_lost || cell.arrived > 0;
    counted[2 * std::size_t{probe}] = {1, static_cast<std::uint8_t>(has_arrived ? 0 : 1)};
    if (has_arrived && is_planned(2 * probe + 1))
      counted[2 * std::size_t{probe} + 1] = {1, static_cast<std::uint8_t>(1 - cell.answered)};
  }
}

bool VariantLocator::has_losses() const {
  for (Window cycle = std::max(first_, counted_until_ - kCyclesCounted + 1);
       cycle <= counted_until_; ++cycle) {
    const auto* const counted = &counted_[slot(cycle) * paths_.size()];
    if (std::any_of(counted, counted + paths_.size(), [](const Counted& one) { return one.lost; }))
      return true;
  }
  return false;
}

void VariantLocator::explain_all(std::span<const FaultVerdict> active) {
  found_.clear();
  if (!has_losses()) return;
  PathTally tally(std::max(first_, counted_until_ - kCyclesCounted + 1), counted_until_);
  for (std::uint32_t path = 0; path < paths_.size(); ++path) {
    tally.add_path(paths_.links(path));
    for (Window cycle = tally.first(); cycle <= tally.last(); ++cycle) {
      const Counted& one = counted_[slot(cycle) * paths_.size() + path];
      tally.set(path, cycle, one.sent, one.lost);
    }
  }
  std::vector<FaultVerdict> own;
  std::vector<KnownFault> known;
  for (const FaultVerdict& verdict : active)
    if (verdict.symptom == symptom_) {
      own.push_back(verdict);
      known.push_back({verdict.culprit});
    }
  ended_faults_.trim(own, tally);
  for (Explanation& one : explain(graph_, tally.counts(), known, options_.explain)) {
    if (one.verdict.symptom == Symptom::kLoss) continue;
    one.verdict.symptom = symptom_;
    one.verdict.since =
        static_cast<double>(tally.first() + static_cast<Window>(one.onset)) * cycle_length_;
    std::erase_if(last_found_, [&](const auto& known_culprit) {
      return known_culprit.first == one.verdict.culprit;
    });
    last_found_.emplace_back(one.verdict.culprit, counted_until_);
    found_.push_back(std::move(one.verdict));
  }
}

const std::vector<FaultVerdict>& VariantLocator::evaluate(const ProbeWindows& probes,
                                                          std::span<const FaultVerdict> active,
                                                          const IsPlanned& is_planned,
                                                          Window last) {
  if (newest_ < 0) return found_;
  const Window complete = (last - kSettles + 1) / kWindowsPerCycle - 1;
  if (complete <= counted_until_) return found_;
  const auto memory = static_cast<Window>(kSlots);
  for (Window cycle = std::max(counted_until_ + 1, complete - memory + 1); cycle <= complete;
       ++cycle)
    count_cycle(cycle, probes, is_planned);
  counted_until_ = complete;
  const auto again = static_cast<Window>(std::ceil(kTriedAgain / cycle_length_));
  std::erase_if(last_found_,
                [&](const auto& one) { return counted_until_ - one.second > 2 * again; });
  explain_all(active);
  return found_;
}

bool VariantLocator::is_observed(const FaultVerdict& verdict) const {
  const auto found =
      std::ranges::find(last_found_, verdict.culprit, &std::pair<Culprit, Window>::first);
  const auto again = static_cast<Window>(std::ceil(kTriedAgain / cycle_length_));
  if (found == last_found_.end() || counted_until_ - found->second > again) return true;
  const auto links = sorted_links(graph_, verdict.culprit);
  int crossing = 0;
  int observed = 0;
  for (std::uint32_t path = 0; path < paths_.size(); ++path) {
    if (!crosses_any(paths_.links(path), links)) continue;
    ++crossing;
    bool is_seen = false;
    for (Window cycle = std::max(first_, counted_until_ - kRecent + 1);
         cycle <= counted_until_ && !is_seen; ++cycle)
      is_seen = counted_[slot(cycle) * paths_.size() + path].sent > 0;
    observed += is_seen ? 1 : 0;
  }
  return 2 * observed >= crossing;
}

}  // namespace regatta::diag
