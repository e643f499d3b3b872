#include "bench/reliability/gang_tables.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "regatta/base/core/stats.h"
#include "regatta/platform/reliability/checkpointing.h"
#include "regatta/platform/reliability/expected_loss.h"
#include "regatta/platform/reliability/gang_simulation.h"
#include "regatta/platform/reliability/spares.h"

namespace regatta::reliability {
namespace {

constexpr int kSeeds = 10;
constexpr int kNodes = kGangNodes;
constexpr int kDevices = 8 * kNodes;
constexpr Seconds kHorizon = kGangTime;
constexpr Seconds kWarmUp = 365 * kDay;

// Llama 3 405B: 16 M tokens a step at 400 TFLOPS on each of 16,384 GPUs: 6 x 405e9 x 16e6 / 6.6e18.
constexpr Seconds kStep{5.9};
// ByteRobust, SOSP 2025, as reports on the paper have it: saving into memory at each step costs
// below 0.9 %.
constexpr Seconds kMemorySave = kStep * 0.009;
// Llama 3: up to 4 GB a GPU, storage of 2 TB/s.
constexpr Seconds kStorageSave{4e9 * kDevices / 2e12};
constexpr Seconds kDetect{20};  // ByteRobust: 10 to 30 s
constexpr Seconds kReplace{60};
constexpr Seconds kLoad{90};
constexpr Seconds kStorageLoad = kLoad + kStorageSave;
// InfiniteHBD: repairs with a median of 30 h and a mean of 6.1 d; a quarter fail again within a
// day.
constexpr NodeRepair kRepair{30 * kHour, 6.1 * kDay, 0.25, kDay};
// InfiniteHBD: 5 % of the servers have 31 % of the faults.
constexpr LemonNodes kLemons{0.05, 0.31 / 0.05 / (0.69 / 0.95)};
// Kokolis et al., HPCA 2025: 40 lemons among 3,000 servers; without them failures of large jobs
// fell from 14 to 4 %. They come back quickly.
constexpr double kFewLemons = 40.0 / 3000;
constexpr LemonNodes kHeavyLemons{kFewLemons,
                                  (10.0 / 14) / kFewLemons / ((4.0 / 14) / (1 - kFewLemons))};
constexpr NodeRepair kQuickRepair{2 * kHour, 6 * kHour, 0.25, kDay};
constexpr int kFewSpares = 32;

// Gamma distribution with the mean and the variance of the rates of nodes with and without lemons.
RateBelief lemon_prior(const LemonNodes& lemons, FailureRate mean) {
  const double usual = 1 / (1 - lemons.share + lemons.share * lemons.factor);
  const double spread = (lemons.factor - 1) * usual;
  const double variance = lemons.share * (1 - lemons.share) * spread * spread;
  const double shape = variance > 0 ? std::min(kShapeMax, 1 / variance) : kShapeMax;
  return {shape, Seconds{shape / mean.value}};
}

FailureRate lost_nodes(const FailureMix& mix, double relapse_share) {
  FailureRate sum{};
  for (const FailureCause& cause : mix.causes) {
    if (cause.effect == FailureEffect::kRepair) sum += kDevices * cause.per_device;
    // Each repair is followed by a relapse with that chance, that by another, and so on.
    if (cause.effect == FailureEffect::kRelapse)
      sum += kDevices * cause.per_device / (1 - relapse_share);
  }
  return sum;
}

RestartCosts costs_of(const GangOptions& options) {
  return {.save = options.checkpoint.save,
          .detect = options.detect,
          .replace = options.replace,
          .load = options.checkpoint.load,
          .between_failures = time_between(kDevices * options.mix.per_device())};
}

}  // namespace

GangOptions full_gang(const FailureMix& mix) {
  GangOptions options;
  options.nodes = kNodes;
  options.horizon = kHorizon;
  options.warm_up = kWarmUp;
  options.mix = mix;
  options.lemons = kLemons;
  options.checkpoint = {{}, kMemorySave, kLoad};
  options.durable = {1800 * Seconds{1}, kMemorySave, kStorageLoad};
  options.checkpoint_loss = 0.02;
  options.detect = kDetect;
  options.replace = kReplace;
  options.repair = kRepair;
  options.planned = {47, {300}};
  options.weigh_risk = true;
  const FailureRate lost = lost_nodes(mix, 0);
  options.prior = lemon_prior(kLemons, lost / kNodes);
  options.spares = spares_needed({.nodes = kNodes,
                                  .node_loss = lost_nodes(mix, kRepair.relapse_share),
                                  .repair = kRepair.mean});
  options.checkpoint.interval = daly_interval(costs_of(options));
  return options;
}

namespace {

void use_storage_alone(GangOptions& options) {
  options.checkpoint = {{}, kStorageSave, kStorageLoad};
  options.durable = {};
  options.checkpoint_loss = 0;
  options.checkpoint.interval = daly_interval(costs_of(options));
}

Result<std::vector<GangOutcome>> run_seeds(const GangOptions& options) {
  std::vector<GangOutcome> outcomes;
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
    REGATTA_TRY(outcome, simulate_gang(options, seed));
    outcomes.push_back(outcome);
  }
  return outcomes;
}

template <typename Figure>
std::vector<double> figures(const std::vector<GangOutcome>& outcomes, Figure figure) {
  std::vector<double> values;
  values.reserve(outcomes.size());
  for (const GangOutcome& outcome : outcomes)
    values.push_back(static_cast<double>(std::invoke(figure, outcome)));
  return values;
}

std::string percent_of(const std::vector<GangOutcome>& outcomes, Seconds GangOutcome::*part) {
  const auto share = [part](const GangOutcome& outcome) {
    return 100 * (outcome.*part / kHorizon);
  };
  return fmt::format("{:.2f}", median(figures(outcomes, share)));
}

std::string ettr_text(const std::vector<GangOutcome>& outcomes) {
  std::vector<double> ratios = figures(outcomes, &GangOutcome::ettr);
  std::sort(ratios.begin(), ratios.end());
  return fmt::format("{:.2f} ({:.2f} to {:.2f})", 100 * median(ratios), 100 * ratios.front(),
                     100 * ratios.back());
}

std::string count_text(const std::vector<GangOutcome>& outcomes, int GangOutcome::*count) {
  return fmt::format("{:.0f}", median(figures(outcomes, count)));
}

Result<std::vector<std::string>> gang_row(const std::string& name, const GangOptions& options) {
  REGATTA_TRY(outcomes, run_seeds(options));
  return std::vector<std::string>{name,
                                  ettr_text(outcomes),
                                  percent_of(outcomes, &GangOutcome::recomputed),
                                  percent_of(outcomes, &GangOutcome::saving),
                                  percent_of(outcomes, &GangOutcome::restarting),
                                  percent_of(outcomes, &GangOutcome::waiting),
                                  percent_of(outcomes, &GangOutcome::planned),
                                  count_text(outcomes, &GangOutcome::failures),
                                  count_text(outcomes, &GangOutcome::relapses),
                                  std::to_string(options.spares),
                                  count_text(outcomes, &GangOutcome::blacklisted)};
}

using NamedGangs = std::vector<std::pair<std::string, GangOptions>>;

NamedGangs measures(const FailureMix& mix) {
  const GangOptions full = full_gang(mix);
  NamedGangs gangs = {{"spares, risk, checkpoints in memory", full}};
  const auto vary = [&](const std::string& name, const std::function<void(GangOptions&)>& change) {
    GangOptions options = full;
    change(options);
    gangs.emplace_back(name, options);
  };
  vary("the counts as published: no lemons, no relapses", [](GangOptions& o) {
    o.lemons = {};
    o.repair.relapse_share = 0;
  });
  vary("all nodes work at the start", [](GangOptions& o) { o.warm_up = {}; });
  vary("without risk: no blacklist, oldest spare first",
       [](GangOptions& o) { o.weigh_risk = false; });
  vary("without spares", [](GangOptions& o) { o.spares = 0; });
  vary("ten more spares", [](GangOptions& o) { o.spares += 10; });
  vary("half of the spares", [](GangOptions& o) { o.spares /= 2; });
  vary("checkpoint at each step", [](GangOptions& o) { o.checkpoint.interval = kStep; });
  vary("checkpoints in storage alone", use_storage_alone);
  vary("storage, without risk", [](GangOptions& o) {
    use_storage_alone(o);
    o.weigh_risk = false;
  });
  vary("storage, failures seen after 10 min", [](GangOptions& o) {
    use_storage_alone(o);
    o.detect = {600};
  });
  vary("heavy lemons, quick repairs, without risk", [](GangOptions& o) {
    o.lemons = kHeavyLemons;
    o.repair = kQuickRepair;
    o.spares = kFewSpares;
    o.weigh_risk = false;
  });
  vary("heavy lemons, quick repairs, with risk", [&](GangOptions& o) {
    o.lemons = kHeavyLemons;
    o.repair = kQuickRepair;
    o.spares = kFewSpares;
    o.prior = lemon_prior(kHeavyLemons, lost_nodes(mix, 0) / kNodes);
  });
  return gangs;
}

Result<ResultTable> measure_table(const FailureMix& mix) {
  ResultTable table{"16,384 GPUs, 54 days, failure mix of Llama 3",
                    {"gang", "ETTR % (least to most)", "recompute %", "saving %", "restart %",
                     "waiting %", "planned %", "failures", "relapses", "spares", "blacklisted"},
                    {}};
  for (const auto& [name, options] : measures(mix)) {
    REGATTA_TRY(row, gang_row(name, options));
    table.rows.push_back(row);
  }
  return table;
}

Result<ResultTable> interval_table(const FailureMix& mix) {
  ResultTable table{"interval between checkpoints: ETTR % simulated and in closed form",
                    {"interval", "in memory: s", "simulated", "closed form", "in storage: s",
                     "simulated", "closed form"},
                    {}};
  using Rule = std::function<Seconds(const RestartCosts&)>;
  const auto scaled = [](double factor) {
    return [factor](const RestartCosts& costs) { return daly_interval(costs) * factor; };
  };
  const std::vector<std::pair<std::string, Rule>> rules = {
      {"Young", young_interval},
      {"Daly, first order", daly_first_order_interval},
      {"Daly", daly_interval},
      {"exact", exact_interval},
      {"a quarter of Daly", scaled(.25)},
      {"4 x Daly", scaled(4)},
      {"16 x Daly", scaled(16)}};
  for (const auto& [name, rule] : rules) {
    std::vector<std::string> row = {name};
    for (const bool is_storage : {false, true}) {
      // The assumptions of the closed form: failures all alike, a spare always, no planned stops.
      GangOptions options = full_gang(mix);
      options.lemons = {};
      options.repair.relapse_share = 0;
      options.planned = {};
      options.weigh_risk = false;
      options.spares = 300;
      options.warm_up = {};
      if (is_storage) use_storage_alone(options);
      options.checkpoint_loss = 0;
      for (FailureCause& cause : options.mix.causes)
        cause.effect = FailureEffect::kRepair;
      options.checkpoint.interval = rule(costs_of(options));
      REGATTA_TRY(outcomes, run_seeds(options));
      row.push_back(fmt::format("{:.1f}", options.checkpoint.interval.value));
      row.push_back(fmt::format("{:.2f}", 100 * median(figures(outcomes, &GangOutcome::ettr))));
      row.push_back(fmt::format(
          "{:.2f}", 100 * expected_ettr(costs_of(options), options.checkpoint.interval)));
    }
    table.rows.push_back(row);
  }
  return table;
}

// Long runs where Daly's assumptions hold.
Result<ResultTable> closed_form_table() {
  ResultTable table{
      "simulation beside Daly's closed form, at Daly's interval, 100,000 failures",
      {"time between failures h", "save s", "restart s", "closed form %", "simulated %", "ratio"},
      {}};
  double worst = 0;
  for (const double hours : {0.5, 3.1, 24.0})
    for (const double save : {0.5, 20.0, 300.0})
      for (const double restart : {20.0, 200.0, 1500.0}) {
        GangOptions options;
        options.nodes = 16;
        options.spares = 300;
        options.horizon = 100000 * hours * kHour;
        const FailureRate each = rate_of(1.0 / 128, hours * kHour);
        options.mix.causes = {
            {"cause", FailureClass::kNetwork, FailureEffect::kRepair, 1, 1, each}};
        options.detect = {restart / 4};
        options.replace = {restart / 4};
        options.checkpoint = {{}, {save}, {restart / 2}};
        options.repair = {hours * kHour, hours * kHour};
        const RestartCosts costs{.save = {save},
                                 .detect = options.detect,
                                 .replace = options.replace,
                                 .load = options.checkpoint.load,
                                 .between_failures = hours * kHour};
        options.checkpoint.interval = daly_interval(costs);
        REGATTA_TRY(outcome, simulate_gang(options, 1));
        const double closed = expected_ettr(costs, options.checkpoint.interval);
        worst = std::max(worst, std::abs(outcome.ettr() / closed - 1));
        table.rows.push_back({fmt::format("{}", hours), fmt::format("{}", save),
                              fmt::format("{}", restart), fmt::format("{:.3f}", 100 * closed),
                              fmt::format("{:.3f}", 100 * outcome.ettr()),
                              fmt::format("{:.5f}", outcome.ettr() / closed)});
      }
  table.rows.push_back({"worst deviation", "", "", "", "", fmt::format("{:.3f} %", 100 * worst)});
  return table;
}

Result<ResultTable> restart_table(const FailureMix& mix) {
  ResultTable table{"time from failure to training (detection, replacement, load), all measures on",
                    {"restart s", "ETTR % (least to most)"},
                    {}};
  for (const double load : {10.0, 40.0, 90.0, 150.0, 210.0, 300.0, 600.0}) {
    GangOptions options = full_gang(mix);
    options.checkpoint.load = {load};
    options.durable.load = Seconds{load} + kStorageSave;
    options.checkpoint.interval = daly_interval(costs_of(options));
    REGATTA_TRY(outcomes, run_seeds(options));
    table.rows.push_back(
        {fmt::format("{:.0f}", costs_of(options).restart().value), ettr_text(outcomes)});
  }
  return table;
}

Result<ResultTable> spare_table(const FailureMix& mix) {
  const SparePool pool{
      .nodes = kNodes, .node_loss = lost_nodes(mix, kRepair.relapse_share), .repair = kRepair.mean};
  ResultTable table{
      "spares: share of the time that the job waits, over 20 years, mean of the seeds",
      {"spares", "closed form %", "simulated %", "price of progress"},
      {}};
  const int best = spares_needed(pool);
  REGATTA_TRY(quantile, spares_for_share(pool, 0.99));
  std::vector<int> counts = {0, best / 4, best / 2, 3 * best / 4, best, quantile, best + 20};
  std::sort(counts.begin(), counts.end());
  for (const int spares : counts) {
    GangOptions options = full_gang(mix);
    options.spares = spares;
    options.weigh_risk = false;
    options.lemons = {};
    options.planned = {};
    // Relapses would come in the node that returns; here they are spread over all nodes, as in the
    // closed form.
    options.repair.relapse_share = 0;
    for (FailureCause& cause : options.mix.causes)
      if (cause.effect == FailureEffect::kRelapse)
        cause.per_device = cause.per_device / (1 - kRepair.relapse_share);
    options.checkpoint.interval = kHour;
    // The same mean with a shorter tail, which is in balance within years; the share depends on the
    // mean alone.
    options.repair.median = kRepair.mean / 2;
    options.horizon = 20 * 365 * kDay;
    options.warm_up = {};
    double waited = 0;
    for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
      REGATTA_TRY(outcome, simulate_gang(options, seed));
      waited += outcome.waiting / options.horizon / kSeeds;
    }
    std::string name = std::to_string(spares);
    if (spares == best) name += " (spares_needed)";
    if (spares == quantile) name += " (99 % quantile)";
    table.rows.push_back({name, fmt::format("{:.3f}", 100 * wait_share(pool, spares)),
                          fmt::format("{:.3f}", 100 * waited),
                          fmt::format("{:.4f}", cost_of_spares(pool, spares))});
  }
  return table;
}

ResultTable drain_table() {
  ResultTable table{"least failures a day of a node at which draining it for a day pays",
                    {"GPUs of the job", "failures a day", "failures a day, restart of 40 min"},
                    {}};
  for (const int devices : {64, 256, 1024, 4096, 16384}) {
    std::vector<std::string> row = {std::to_string(devices)};
    for (const double restart : {170.0, 2400.0}) {
      const JobAtRisk job{.devices = 1.0 * devices,
                          .interval = {60},
                          .save = kMemorySave,
                          .restart = {restart},
                          .planned_restart = {120},
                          .since_checkpoint = {}};
      double low = 1e-6;
      double high = 1e6;
      // A node of 8 GPUs is away for a day.
      while (high / low > 1.0001) {
        const double middle = std::sqrt(low * high);
        const DrainDecision decision =
            decide_drain(job, rate_of(middle, kDay), kDay, 8 * kDay.value);
        (decision.time == DrainTime::kLater ? low : high) = middle;
      }
      row.push_back(fmt::format("{:.3f}", high));
    }
    table.rows.push_back(row);
  }
  return table;
}

}  // namespace

Result<std::vector<ResultTable>> gang_tables(const FailureMix& llama3) {
  REGATTA_TRY(mix, with_rates(llama3, kDevices, kHorizon));
  REGATTA_TRY(closed, closed_form_table());
  REGATTA_TRY(bars, measure_table(mix));
  REGATTA_TRY(intervals, interval_table(mix));
  REGATTA_TRY(restarts, restart_table(mix));
  REGATTA_TRY(spares, spare_table(mix));
  return std::vector<ResultTable>{closed, bars, intervals, restarts, spares, drain_table()};
}

}  // namespace regatta::reliability
