#include "regatta/network/diag/internal/ended_faults.h"

#include <algorithm>
#include <utility>

#include "regatta/network/diag/internal/path_crossing.h"

namespace regatta::diag {
namespace {

constexpr int kCleanWindows = 3;  // without a loss that make an end sure
constexpr int kMixedWindows = 3;
constexpr int kChangedWindows = 8;  // with few losses: it has become another fault

bool is_black_hole(const FaultVerdict& verdict) {
  return is_fault(verdict) &&
         (verdict.symptom == Symptom::kBlackHole || verdict.symptom == Symptom::kSomeFlows ||
          is_of_variant(verdict.symptom));
}

// Windows with its losses and without them, taken together, look like a loss elsewhere; few losses
// do not.
bool is_heavy_loss(const FaultVerdict& verdict) {
  constexpr double kHeavy = 0.1;
  return is_fault(verdict) && verdict.symptom == Symptom::kLoss && verdict.loss_share >= kHeavy;
}

void clear_across(const std::vector<std::uint32_t>& links, Window first, Window last,
                  PathTally& tally) {
  for (std::size_t path = 0; path < tally.size(); ++path)
    if (crosses_any(tally.links(path), links)) tally.clear(path, first, last);
}

// The newest windows, in which most of the paths that a black hole had closed deliver again.
struct OpenRun {
  int windows = 0;          // 0: the paths are still closed
  int mixed = 0;            // in which only some do
  bool is_clean = true;     // the newest kCleanWindows of them lost nothing
  Window last_closed = -1;  // before them; -1: none
  Window last_lossy = -1;   // among or before them
};

OpenRun open_run(const std::vector<std::size_t>& closed, const PathTally& tally) {
  OpenRun run;
  for (Window window = tally.last(); window >= tally.first(); --window) {
    int sending = 0;
    int open = 0;
    bool is_lossy = false;
    for (const std::size_t path : closed) {
      const auto [sent, lost] = tally.counts_at(path, window);
      sending += sent > 0 ? 1 : 0;
      open += sent > lost ? 1 : 0;
      is_lossy = is_lossy || lost > 0;
    }
    if (sending == 0) continue;
    if (is_lossy) run.last_lossy = std::max(run.last_lossy, window);
    if (2 * open < sending) {
      // The window of the end itself: it began while the paths were closed.
      if (open > 0 && ++run.mixed <= kMixedWindows) continue;
      run.last_closed = window;
      return run;
    }
    if (is_lossy && run.windows < kCleanWindows) run.is_clean = false;
    ++run.windows;
  }
  return run;
}

// Whether a black hole has closed the path for a while.
bool was_closed(std::size_t path, const PathTally& tally) {
  constexpr int kWindows = 2;
  int closed = 0;
  for (Window window = tally.first(); window <= tally.last() && closed < kWindows; ++window) {
    const auto [sent, lost] = tally.counts_at(path, window);
    closed += sent > 0 && lost == sent ? 1 : 0;
  }
  return closed == kWindows;
}

}  // namespace

void EndedFaults::forget_until(const std::vector<std::uint32_t>& links, Window last,
                               PathTally& tally) {
  clear_across(links, tally.first(), last, tally);
  std::erase_if(ended_, [&](const EndedFault& one) { return one.links == links; });
  ended_.push_back({links, last});
}

std::vector<std::size_t> EndedFaults::own_paths(std::span<const std::vector<std::uint32_t>> active,
                                                std::size_t place, const PathTally& tally) const {
  std::vector<std::size_t> own;
  for (std::size_t path = 0; path < tally.size(); ++path) {
    if (!crosses_any(tally.links(path), active[place])) continue;
    bool is_shared = false;
    for (std::size_t other = 0; other < active.size(); ++other)
      is_shared = is_shared || (other != place && crosses_any(tally.links(path), active[other]));
    if (!is_shared) own.push_back(path);
  }
  return own;
}

// Over once its paths have delivered so many packets in a row that kLossesMissing of them would
// have been lost before.
void EndedFaults::trim_loss(std::span<const std::vector<std::uint32_t>> active, std::size_t place,
                            double share, PathTally& tally) {
  const std::vector<std::size_t> own = own_paths(active, place, tally);
  double delivered = 0;
  for (Window window = tally.last(); window >= tally.first(); --window) {
    for (const std::size_t path : own) {
      const auto [sent, lost] = tally.counts_at(path, window);
      if (lost == 0) {
        delivered += sent;
        continue;
      }
      if (delivered * share >= kLossesMissing) forget_until(active[place], window, tally);
      return;
    }
  }
}

void EndedFaults::trim_one(std::span<const std::vector<std::uint32_t>> active, std::size_t place,
                           PathTally& tally) {
  const std::vector<std::uint32_t>& links = active[place];
  std::vector<std::size_t> closed = own_paths(active, place, tally);
  std::erase_if(closed, [&](std::size_t path) { return !was_closed(path, tally); });
  const OpenRun run = open_run(closed, tally);
  if (run.windows + run.mixed == 0 || run.last_closed < 0) return;
  // A fault that loses some packets instead of all does not get clean.
  const bool has_changed = run.windows >= kChangedWindows;
  if (!has_changed && (run.windows < kCleanWindows || !run.is_clean)) {
    clear_across(links, run.last_closed + 1, tally.last(), tally);
    return;
  }
  forget_until(links, run.is_clean ? run.last_lossy : run.last_closed, tally);
}

void EndedFaults::trim(std::span<const FaultVerdict> active, PathTally& tally) {
  std::erase_if(ended_, [&](const EndedFault& one) { return one.last_lossy < tally.first(); });
  for (const EndedFault& one : ended_)
    clear_across(one.links, tally.first(), one.last_lossy, tally);
  std::vector<std::vector<std::uint32_t>> links;
  for (const FaultVerdict& verdict : active)
    links.push_back(sorted_links(graph_, verdict.culprit));
  for (std::size_t i = 0; i < active.size(); ++i) {
    if (is_black_hole(active[i])) trim_one(links, i, tally);
    if (is_heavy_loss(active[i])) trim_loss(links, i, active[i].loss_share, tally);
  }
}

}  // namespace regatta::diag
