// diag/test_job_traffic.h: traffic of training jobs for tests, with the truth about it: a step has
// micro-batches that send to the next stage and back, and at its end an all-reduce ring over the
// servers of each stage. Traffic inside a server is not visible.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <random>
#include <vector>

#include "regatta/network/diag/internal/flow_series.h"

namespace regatta::diag {

struct TestJob {
  std::vector<std::vector<int>> stages;  // servers of each stage, in the order of its ring
  double step_s = 0.4;
  double step_jitter = 0.02;   // standard deviation of a step's length, as a share of it
  double burst_jitter = 0.01;  // of the begin of each burst, as a share of the step
  int micro_batches = 4;
  double stage_mb = 4;             // MB that a stage gives to the next, a micro-batch
  double ring_mb = 60;             // MB of the all-reduce on each path of a ring
  double micro_batch_share = 0.6;  // of the step that the micro-batches take
  double ring_share = 0.25;        // of the step that the all-reduce takes; the rest is idle
  int messages = 1;                // messages of a micro-batch, one after the other
  int buckets = 1;                 // messages of the all-reduce
  bool is_interleaved = false;     // 1F1B: each forward is followed by a backward
};

struct TestTruth {
  std::vector<double> begins;  // of its steps, also before and after what is seen

  double step_time(double from, double to) const {
    std::vector<double> seen;
    for (const double at : begins)
      if (at >= from && at <= to) seen.push_back(at);
    return (seen.back() - seen.front()) / static_cast<double>(seen.size() - 1);
  }
};

class TestJobTraffic {
 public:
  TestJobTraffic(double duration_s, double interval_s, std::uint64_t seed)
      : random_(seed), duration_(duration_s) {
    traffic.interval = {interval_s};
  }

  TestTruth add(const TestJob& job) {
    const std::size_t first = traffic.flows.size();
    std::vector<std::vector<std::uint32_t>> rings;
    for (const auto& stage : job.stages)
      rings.push_back(ring(stage));
    std::vector<std::vector<std::uint32_t>> forward;
    std::vector<std::vector<std::uint32_t>> backward;
    for (std::size_t stage = 0; stage + 1 < job.stages.size(); ++stage) {
      forward.push_back(across(job.stages[stage], job.stages[stage + 1]));
      backward.push_back(across(job.stages[stage + 1], job.stages[stage]));
    }
    TestTruth truth;
    std::uniform_real_distribution<double> phase(0, 1);
    std::normal_distribution<double> normal(0, 1);
    for (double at = -phase(random_) * job.step_s; at < duration_;) {
      truth.begins.push_back(at);
      const double length = job.step_s * std::max(0.5, 1 + job.step_jitter * normal(random_));
      step(job, at, length, {rings, forward, backward});
      at += length;
    }
    trickle(first);
    return truth;
  }

  // A flow that is unrelated to steps: an occasional copy.
  void add_copy(int from, int to, double rate_mb) {
    const std::uint32_t flow = add_flow(from, to);
    std::exponential_distribution<double> pause(0.5);
    for (double at = pause(random_); at < duration_;) {
      const double length = pause(random_) / 2;
      put(flow, at, length, rate_mb * 1e6 * length);
      at += length + pause(random_);
    }
  }

  // A share of the samples of each flow is missing: the recorder spreads what it counts next over
  // the intervals since the last sample.
  void lose_samples(double share) {
    std::bernoulli_distribution is_lost(share);
    for (FlowSeries& flow : traffic.flows) {
      std::size_t first = 0;
      double sum = 0;
      for (std::size_t i = 0; i < flow.bytes.size(); ++i) {
        sum += flow.bytes[i];
        if (is_lost(random_) && i + 1 < flow.bytes.size()) continue;
        for (std::size_t k = first; k <= i; ++k)
          flow.bytes[k] = sum / static_cast<double>(i + 1 - first);
        first = i + 1;
        sum = 0;
      }
    }
  }

  TrafficSeries traffic;

 private:
  struct Flows {
    const std::vector<std::vector<std::uint32_t>>& rings;
    const std::vector<std::vector<std::uint32_t>>& forward;
    const std::vector<std::vector<std::uint32_t>>& backward;
  };

  std::uint32_t add_flow(int from, int to) {
    const auto intervals = static_cast<std::size_t>(duration_ / traffic.interval.value);
    traffic.flows.push_back({NodeId{from}, NodeId{to}, std::vector<double>(intervals, 0.0)});
    return static_cast<std::uint32_t>(traffic.flows.size() - 1);
  }

  std::vector<std::uint32_t> ring(const std::vector<int>& servers) {
    std::vector<std::uint32_t> flows;
    for (std::size_t i = 0; servers.size() > 1 && i < servers.size(); ++i)
      flows.push_back(add_flow(servers[i], servers[(i + 1) % servers.size()]));
    return flows;
  }

  std::vector<std::uint32_t> across(const std::vector<int>& from, const std::vector<int>& to) {
    std::vector<std::uint32_t> flows;
    for (std::size_t i = 0; i < from.size(); ++i)
      flows.push_back(add_flow(from[i], to[i]));
    return flows;
  }

  // `bytes` evenly over [at, at + length).
  void put(std::uint32_t flow, double at, double length, double bytes) {
    std::vector<double>& out = traffic.flows[flow].bytes;
    const double width = traffic.interval.value;
    const double end = at + length;
    for (double from = at; from < end;) {
      const double cell = std::floor(from / width + 1e-9);
      const double to = std::min(end, (cell + 1) * width);
      if (cell >= 0 && cell < static_cast<double>(out.size()))
        out[static_cast<std::size_t>(cell)] += bytes * (to - from) / length;
      from = to;
    }
  }

  void step(const TestJob& job, double at, double length, const Flows& flows) {
    std::normal_distribution<double> normal(0, job.burst_jitter * length);
    const double slot = job.micro_batch_share * length / (2 * job.micro_batches);
    for (int i = 0; i < 2 * job.micro_batches; ++i) {
      const bool is_forward = job.is_interleaved ? i % 2 == 0 : i < job.micro_batches;
      for (const auto& set : is_forward ? flows.forward : flows.backward)
        for (const std::uint32_t flow : set)
          messages(flow, job.messages, at + slot * i + normal(random_), 0.5 * slot,
                   job.stage_mb * 1e6);
    }
    const double ring_at = at + (job.micro_batch_share + 0.05) * length;
    for (const auto& set : flows.rings)
      for (const std::uint32_t flow : set)
        messages(flow, job.buckets, ring_at + normal(random_), job.ring_share * length,
                 job.ring_mb * 1e6);
  }

  // `bytes` in `count` messages, with pauses of a third of each between them.
  void messages(std::uint32_t flow, int count, double at, double length, double bytes) {
    const double slot = length / count;
    for (int i = 0; i < count; ++i)
      put(flow, at + slot * i, count == 1 ? slot : 0.67 * slot, bytes / count);
  }

  // Acknowledgements and control messages of every flow from `first` on.
  void trickle(std::size_t first) {
    std::uniform_real_distribution<double> bytes(0, 5e3);
    for (std::size_t flow = first; flow < traffic.flows.size(); ++flow)
      for (double& value : traffic.flows[flow].bytes)
        value += bytes(random_);
  }

  std::mt19937_64 random_;
  double duration_;
};

}  // namespace regatta::diag
