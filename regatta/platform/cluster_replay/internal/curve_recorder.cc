#include "regatta/platform/cluster_replay/internal/curve_recorder.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace regatta::cluster_replay {
namespace {

void add(CurvePoint& sum, const CurvePoint& level, double weight) {
  sum.allocated_share += weight * level.allocated_share;
  sum.busy_share += weight * level.busy_share;
  sum.used_share += weight * level.used_share;
  sum.online_share += weight * level.online_share;
  sum.fragmentation += weight * level.fragmentation;
  sum.waiting_jobs += weight * level.waiting_jobs;
  sum.waiting_devices += weight * level.waiting_devices;
}

CurvePoint divided(const CurvePoint& sum, double time) {
  CurvePoint mean;
  if (time > 0) add(mean, sum, 1 / time);
  mean.evictions = sum.evictions;
  mean.missed = sum.missed;
  return mean;
}

}  // namespace

CurveRecorder::CurveRecorder(Seconds start) : start_(start.value), now_(start.value) {}

void CurveRecorder::halve() {
  std::vector<Sum> halved((sums_.size() + 1) / 2);
  for (std::size_t i = 0; i < sums_.size(); ++i) {
    Sum& sum = halved[i / 2];
    sum.time += sums_[i].time;
    add(sum.weighted, sums_[i].weighted, 1);
    sum.weighted.evictions += sums_[i].weighted.evictions;
    sum.weighted.missed += sums_[i].weighted.missed;
  }
  sums_ = std::move(halved);
  width_ *= 2;
}

CurveRecorder::Sum& CurveRecorder::sum_at(double time) {
  auto index = static_cast<std::size_t>((time - start_) / width_);
  while (index >= static_cast<std::size_t>(kCurvePointsMax)) {
    halve();
    index = static_cast<std::size_t>((time - start_) / width_);
  }
  if (index >= sums_.size()) sums_.resize(index + 1);
  return sums_[index];
}

void CurveRecorder::hold(const CurvePoint& level, Seconds now) {
  while (now_ < now.value) {
    sum_at(now_);  // the width is right for this time
    const double end = start_ + width_ * (std::floor((now_ - start_) / width_) + 1);
    // A boundary that rounds to the present moves on by a point.
    const double next = std::min(now.value, end > now_ ? end : end + width_);
    Sum& sum = sum_at(now_);
    sum.time += next - now_;
    add(sum.weighted, level, next - now_);
    now_ = next;
  }
}

void CurveRecorder::count_eviction() {
  sum_at(now_).weighted.evictions += 1;
}

void CurveRecorder::count_missed() {
  sum_at(now_).weighted.missed += 1;
}

std::vector<CurvePoint> CurveRecorder::points() const {
  std::vector<CurvePoint> points;
  points.reserve(sums_.size());
  for (std::size_t i = 0; i < sums_.size(); ++i) {
    points.push_back(divided(sums_[i].weighted, sums_[i].time));
    points.back().from = {start_ + width_ * static_cast<double>(i)};
  }
  return points;
}

CurvePoint CurveRecorder::mean(Seconds from, Seconds until) const {
  Sum all;
  for (std::size_t i = 0; i < sums_.size(); ++i) {
    const double begin = start_ + width_ * static_cast<double>(i);
    if (begin < from.value || begin >= until.value) continue;
    all.time += sums_[i].time;
    add(all.weighted, sums_[i].weighted, 1);
    all.weighted.evictions += sums_[i].weighted.evictions;
    all.weighted.missed += sums_[i].weighted.missed;
  }
  return divided(all.weighted, all.time);
}

}  // namespace regatta::cluster_replay
