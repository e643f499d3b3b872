#include "regatta/network/link_rates/rate_verdict.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

namespace regatta::link_rates {
namespace {

constexpr double kSamePart = 0.9;  // of the best explanation: one that explains as much
constexpr std::size_t kSlowLinksMost = 256;
constexpr std::size_t kAlternativesMost = 8;

double squared(double x) {
  return x * x;
}

// Measurements as least squares see them: each predicts the least of its limit and of the rates of
// the slow links that it loads.
class RateModel {
 public:
  RateModel(const topo::Graph& graph, std::span<const PathMeasurement> measurements,
            double slow_below)
      : measurements_(measurements), slow_below_(slow_below), paths_of_(2 * graph.links.size()) {
    for (std::size_t i = 0; i < measurements.size(); ++i) {
      const PathMeasurement& one = measurements[i];
      double limit = described_rate(graph, one.path).value;
      if (one.offered.value > 0) limit = std::min(limit, one.offered.value);
      limits_.push_back(limit);
      predicted_.push_back(limit);
      if (one.trains == 0) continue;
      for (const std::uint32_t link : one.path.loaded_links())
        paths_of_[link].push_back(i);
    }
  }

  const std::vector<std::size_t>& paths_of(std::uint32_t link) const { return paths_of_[link]; }
  double rate(std::size_t path) const { return measurements_[path].rate.value; }
  bool is_slow(std::size_t path) const {
    return measurements_[path].trains > 0 && rate(path) < slow_below_ * predicted_[path];
  }
  double expected(std::size_t path) const { return predicted_[path]; }
  // The same without the slow links that are known.
  bool is_below_limit(std::size_t path) const {
    return measurements_[path].trains > 0 && rate(path) < slow_below_ * limits_[path];
  }

  // How much of the squared error goes when `link` has its best rate, and that rate.
  struct Gain {
    double amount = 0;
    double rate = 0;
  };
  Gain gain_of(std::uint32_t link) const {
    Gain best;
    for (const std::size_t of : paths_of_[link]) {
      if (!is_slow(of)) continue;
      const double rate = measurements_[of].rate.value;
      double amount = 0;
      for (const std::size_t path : paths_of_[link])
        amount += error(path, predicted_[path]) - error(path, std::min(predicted_[path], rate));
      if (amount > best.amount) best = {amount, rate};
    }
    return best;
  }

  void add(std::uint32_t link, double rate) {
    slow_[link] = rate;
    predict();
  }
  // Each slow link gets the median rate of the paths that it limits.
  void fit() {
    for (auto& [link, rate] : slow_) {
      std::vector<double> rates;
      for (const std::size_t path : paths_of_[link])
        if (predicted_[path] == rate) rates.push_back(measurements_[path].rate.value);
      if (rates.empty()) continue;
      std::ranges::nth_element(rates,
                               rates.begin() + static_cast<std::ptrdiff_t>(rates.size() / 2));
      rate = rates[rates.size() / 2];
    }
    predict();
  }
  const std::map<std::uint32_t, double>& slow() const { return slow_; }

 private:
  double error(std::size_t path, double predicted) const {
    const double measured = measurements_[path].rate.value;
    // A train that is faster than it should be is noise of the clocks.
    if (measured >= predicted && predicted == limits_[path]) return 0;
    return squared(std::log(measured / predicted));
  }
  void predict() {
    predicted_ = limits_;
    for (const auto& [link, rate] : slow_)
      for (const std::size_t path : paths_of_[link])
        predicted_[path] = std::min(predicted_[path], rate);
  }

  std::span<const PathMeasurement> measurements_;
  double slow_below_;
  std::vector<std::vector<std::size_t>> paths_of_;  // by directed link
  std::vector<double> limits_;
  std::vector<double> predicted_;
  std::map<std::uint32_t, double> slow_;
};

bool loads(const TrainPath& path, std::uint32_t link) {
  return std::ranges::find(path.loaded_links(), link) != path.loaded_links().end();
}

// A path that is not measured yet and loads exactly one of the two.
std::optional<TrainPath> separator_of(std::span<const TrainPath> candidates,
                                      std::span<const PathMeasurement> measurements,
                                      std::uint32_t one, std::uint32_t other) {
  for (const TrainPath& candidate : candidates) {
    // Loaded up to the first of the two.
    const auto first = std::ranges::find_if(
        candidate.links, [&](std::uint32_t link) { return link == one || link == other; });
    if (first == candidate.links.end()) continue;
    TrainPath path = candidate;
    path.loaded = static_cast<std::size_t>(first - candidate.links.begin()) + 1;
    const bool is_known = std::ranges::any_of(measurements, [&](const PathMeasurement& known) {
      return known.trains > 0 && known.path == path;
    });
    if (!is_known) return path;
  }
  return std::nullopt;
}

std::vector<std::uint32_t> suspects_of(const RateModel& model,
                                       std::span<const PathMeasurement> measurements) {
  std::set<std::uint32_t> suspects;
  for (std::size_t i = 0; i < measurements.size(); ++i)
    if (model.is_slow(i))
      for (const std::uint32_t link : measurements[i].path.loaded_links())
        suspects.insert(link);
  return {suspects.begin(), suspects.end()};
}

struct Choice {
  std::uint32_t link = 0;
  RateModel::Gain gain;
};

// The suspects, the one that explains most first.
std::vector<Choice> choices_of(const RateModel& model, std::span<const std::uint32_t> suspects) {
  std::vector<Choice> choices;
  for (const std::uint32_t link : suspects)
    if (const auto gain = model.gain_of(link); gain.amount > 0) choices.push_back({link, gain});
  std::ranges::stable_sort(choices, std::greater(),
                           [](const Choice& one) { return one.gain.amount; });
  return choices;
}

void add_evidence(SlowLink& slow, const RateModel& model,
                  std::span<const PathMeasurement> measurements) {
  for (std::size_t i = 0; i < measurements.size(); ++i) {
    const TrainPath& path = measurements[i].path;
    if (measurements[i].trains == 0) continue;
    if (loads(path, slow.link)) {
      if (model.is_below_limit(i)) slow.slow_paths.push_back(i);
      continue;
    }
    // The next link on this way is the slow one.
    const bool is_before = path.loaded < path.links.size() && path.links[path.loaded] == slow.link;
    if (is_before && !model.is_below_limit(i)) slow.fast_before.push_back(i);
  }
}

LinkRate rate_of(const topo::Graph& graph, const RateModel& model, std::uint32_t link) {
  LinkRate rate{.link = link, .at_least = {}, .described = graph.links[link / 2].rate};
  rate.is_measured = model.slow().contains(link);
  for (const std::size_t path : model.paths_of(link)) {
    rate.at_least.value = std::max(rate.at_least.value, model.rate(path));
    // Its own rate is the narrowest of the path, and no slow link hides it.
    if (model.expected(path) >= 0.99 * rate.described.value) rate.is_measured = true;
  }
  return rate;
}

}  // namespace

RateVerdicts decide_rates(const topo::Graph& graph, std::span<const PathMeasurement> measurements,
                          std::span<const TrainPath> candidates,
                          const RateVerdictOptions& options) {
  RateModel model(graph, measurements, options.slow_below);
  RateVerdicts verdicts;
  while (verdicts.slow.size() < kSlowLinksMost) {
    const std::vector<std::uint32_t> suspects = suspects_of(model, measurements);
    const std::vector<Choice> choices = choices_of(model, suspects);
    // One that explains less than a single path just below the threshold is noise.
    if (choices.empty() || choices.front().gain.amount < squared(std::log(options.slow_below)))
      break;
    const Choice& best = choices.front();
    SlowLink slow{.link = best.link, .described = graph.links[best.link / 2].rate};
    for (const Choice& other : choices) {
      if (other.link == best.link || other.gain.amount < kSamePart * best.gain.amount) continue;
      if (slow.alternatives.size() == kAlternativesMost) break;
      slow.alternatives.push_back(
          {other.link, separator_of(candidates, measurements, best.link, other.link)});
    }
    model.add(best.link, best.gain.rate);
    model.fit();
    verdicts.slow.push_back(std::move(slow));
  }
  for (SlowLink& slow : verdicts.slow) {
    slow.measured.value = model.slow().at(slow.link);
    add_evidence(slow, model, measurements);
  }
  for (std::size_t i = 0; i < measurements.size(); ++i)
    verdicts.expected.push_back({model.expected(i)});
  for (std::size_t i = 0; i < measurements.size(); ++i)
    verdicts.unexplained += model.is_slow(i) ? 1 : 0;
  for (std::uint32_t link = 0; link < 2 * graph.links.size(); ++link)
    verdicts.links.push_back(rate_of(graph, model, link));
  return verdicts;
}

}  // namespace regatta::link_rates
