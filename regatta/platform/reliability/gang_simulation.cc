#include "regatta/platform/reliability/gang_simulation.h"

#include <algorithm>
#include <string_view>

#include <fmt/format.h>

#include "regatta/base/core/stats.h"
#include "regatta/platform/packing/random_sequence.h"
#include "regatta/platform/reliability/internal/node_pool.h"
#include "regatta/platform/reliability/internal/random_times.h"

namespace regatta::reliability {
namespace {

class GangRun {
 public:
  GangRun(const GangOptions& options, std::uint64_t seed)
      : options_(options), random_(splitmix(seed)), pool_(options, seed) {
    for (const FailureCause& cause : options.mix.causes)
      if (cause.effect == FailureEffect::kRestart)
        restart_only_ += options.nodes * options.devices_per_node * cause.per_device;
  }

  GangOutcome run() {
    end_ = options_.warm_up;
    run_to_end();
    outcome_ = {};
    const int spares_before = pool_.spares_used();
    end_ = options_.warm_up + options_.horizon;
    run_to_end();
    outcome_.spares_used = pool_.spares_used() - spares_before;
    outcome_.blacklisted = pool_.blacklisted();
    return outcome_;
  }

 private:
  void run_to_end() {
    while (now_ < end_) {
      if (pool_.missing() > 0)
        wait();
      else if (restart_left_.value > 0)
        restart();
      else
        train();
      pool_.take_back(now_, failure_cost());
    }
  }

  Seconds failure_cost() const {
    return options_.checkpoint.interval / 2 + options_.detect + options_.replace +
           options_.checkpoint.load;
  }

  Seconds next_failure() {
    return now_ + exponential_time(random_, pool_.hazard() + restart_only_);
  }

  Seconds next_planned_stop() const {
    if (planned_done_ >= options_.planned.count) return end_;
    return options_.warm_up + options_.horizon * ((planned_done_ + 0.5) / options_.planned.count);
  }

  void spend(Seconds until, Seconds& sum) {
    sum += until - now_;
    now_ = until;
  }

  void wait() {
    // The pool takes nodes back as they return; nothing fails meanwhile.
    spend(std::min(pool_.next_return(), end_), outcome_.waiting);
  }

  void restart() {
    const Seconds end = std::min(now_ + restart_left_, end_);
    const Seconds failure = next_failure();
    Seconds& sum = is_planned_ ? outcome_.planned : outcome_.restarting;
    if (failure < end) {
      spend(failure, sum);
      fail();
      return;
    }
    spend(end, sum);
    restart_left_ = {};
    is_planned_ = false;
  }

  // Trains from a checkpoint on until a failure, a planned stop or the end.
  void train() {
    const Seconds planned = std::max(now_, next_planned_stop());
    const Seconds failure = next_failure();
    const Seconds end = std::min({failure, planned, end_});
    const CheckpointLevel& level = options_.checkpoint;
    while (now_ + level.interval + level.save <= end)
      train_interval(end);
    if (end == failure) {
      spend(end, outcome_.recomputed);
      fail();
      return;
    }
    const Seconds trained = std::min(end - now_, level.interval);
    since_durable_ += trained;
    spend(now_ + trained, outcome_.trained);
    spend(end, outcome_.saving);
    if (end < end_) stop_as_planned();
  }

  void train_interval(Seconds end) {
    const CheckpointLevel& level = options_.checkpoint;
    spend(now_ + level.interval, outcome_.trained);
    spend(now_ + level.save, outcome_.saving);
    since_durable_ += level.interval;
    const CheckpointLevel& durable = options_.durable;
    if (durable.interval.value <= 0 || since_durable_ < durable.interval) return;
    const bool is_saved = now_ + durable.save <= end;
    spend(std::min(now_ + durable.save, end), outcome_.saving);
    if (is_saved) since_durable_ = {};
  }

  void stop_as_planned() {
    ++planned_done_;
    spend(std::min(now_ + options_.checkpoint.save, end_), outcome_.saving);
    since_durable_ = {};
    spend(std::min(now_ + options_.planned.duration, end_), outcome_.planned);
    restart_left_ = options_.checkpoint.load;
    is_planned_ = true;
  }

  void fail() {
    ++outcome_.failures;
    pool_.take_back(now_, failure_cost());
    is_planned_ = false;
    restart_left_ = options_.detect + options_.checkpoint.load;
    const double total = (pool_.hazard() + restart_only_).value;
    if (random_.uniform() * total >= restart_only_.value) {
      outcome_.relapses += pool_.lose_node(now_) ? 1 : 0;
      ++outcome_.node_losses;
      restart_left_ += options_.replace;
    }
    if (options_.checkpoint_loss <= 0 || random_.uniform() >= options_.checkpoint_loss) return;
    outcome_.trained -= since_durable_;
    outcome_.recomputed += since_durable_;
    since_durable_ = {};
    restart_left_ += options_.durable.load - options_.checkpoint.load;
  }

  const GangOptions& options_;
  packing::RandomSequence random_;
  NodePool pool_;
  FailureRate restart_only_;
  Seconds now_;
  Seconds end_;  // of the warm-up, then of all
  Seconds restart_left_;
  Seconds since_durable_;  // training that a loss of the frequent checkpoint undoes
  bool is_planned_ = false;
  int planned_done_ = 0;
  GangOutcome outcome_;
};

Status check(const GangOptions& options) {
  const auto wrong = [](std::string_view option, std::string_view remedy) {
    return Error{Code::kInvalidInput, fmt::format("gang: {}: give {}", option, remedy)};
  };
  if (options.nodes < 1) return wrong("nodes", "at least 1");
  if (options.devices_per_node < 1) return wrong("devices_per_node", "at least 1");
  if (options.spares < 0) return wrong("spares", "at least 0");
  if (!(options.horizon.value > 0)) return wrong("horizon", "a positive time");
  if (!(options.warm_up.value >= 0)) return wrong("warm_up", "a time of at least 0");
  if (!(options.checkpoint.interval.value > 0))
    return wrong("checkpoint.interval", "a positive time");
  if (!(options.mix.per_device().value > 0)) return wrong("mix", "causes with rates");
  if (!(options.lemons.share >= 0 && options.lemons.share <= 1 && options.lemons.factor >= 1))
    return wrong("lemons", "a share from 0 to 1 and a factor of at least 1");
  const NodeRepair& repair = options.repair;
  if (!(repair.median.value > 0 && repair.mean >= repair.median))
    return wrong("repair", "a positive median and a mean that is not below it");
  if (!(repair.relapse_share >= 0 && repair.relapse_share < 1 && repair.relapse_time.value > 0))
    return wrong("repair", "a relapse share from 0 to below 1 and a positive relapse time");
  if (options.checkpoint_loss > 0 && !(options.durable.interval.value > 0))
    return wrong("durable.interval", "a positive time where checkpoints can be lost");
  if (options.weigh_risk && !(options.prior.shape > 0 && options.prior.exposure.value > 0))
    return wrong("prior", "a positive shape and exposure");
  return {};
}

}  // namespace

double GangOutcome::ettr() const {
  return trained / (trained + recomputed + saving + restarting + waiting + planned);
}

Result<GangOutcome> simulate_gang(const GangOptions& options, std::uint64_t seed) {
  REGATTA_TRY_DO(check(options));
  return GangRun(options, seed).run();
}

}  // namespace regatta::reliability
