#include "integrations/torch/src/monitored_barrier.h"

#include <algorithm>
#include <string>
#include <vector>

#include <c10/util/Exception.h>

namespace regatta_torch {
namespace {

using Clock = std::chrono::steady_clock;

// Rank 0 answers a little later than the others give up by themselves.
constexpr std::chrono::milliseconds kForTheAnswer{5000};
constexpr const char* kAllCame = "+";

bool arrives(c10d::Store& store, const std::string& key, std::chrono::milliseconds timeout) {
  try {
    store.wait({key}, std::max(timeout, std::chrono::milliseconds(1)));
    return true;
  } catch (const std::exception&) {
    return false;
  }
}

std::string missing_ranks(c10d::Store& store, const MonitoredBarrier& barrier,
                          const std::string& prefix) {
  const auto deadline = Clock::now() + barrier.timeout;
  std::string missing;
  for (int peer = 1; peer < barrier.size; ++peer) {
    const auto rest =
        std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now());
    if (arrives(store, prefix + std::to_string(peer), rest)) continue;
    missing += (missing.empty() ? "rank " : ", rank ") + std::to_string(peer);
    if (!barrier.names_all) break;
  }
  return missing;
}

}  // namespace

void monitored_barrier(c10d::Store& store, const MonitoredBarrier& barrier) {
  const std::string prefix = "regatta/barrier/" + std::to_string(barrier.number) + "/";
  const std::string verdict = prefix + "verdict";
  std::string missing;
  if (barrier.rank == 0) {
    missing = missing_ranks(store, barrier, prefix);
    // Not every store distinguishes an empty value from none.
    const std::string text = missing.empty() ? kAllCame : missing;
    store.set(verdict, {text.begin(), text.end()});
  } else {
    store.set(prefix + std::to_string(barrier.rank), {'+'});
    if (!arrives(store, verdict, barrier.timeout + kForTheAnswer)) {
      missing = "rank 0";
    } else {
      const std::vector<std::uint8_t> text = store.get(verdict);
      missing.assign(text.begin(), text.end());
      if (missing == kAllCame) missing.clear();
    }
  }
  TORCH_CHECK(missing.empty(), "regatta: monitored_barrier: no word from ", missing, " within ",
              barrier.timeout.count(), " ms: see whether it runs");
}

}  // namespace regatta_torch
