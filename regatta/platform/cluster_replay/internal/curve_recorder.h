// cluster_replay/internal/curve_recorder.h: means over time of what a replay watches, in a bounded
// number of points.
#pragma once

#include <vector>

#include "regatta/base/core/units.h"
#include "regatta/platform/cluster_replay/replay_result.h"

namespace regatta::cluster_replay {

// The points are equally long. When there are too many, two neighbours become one.
class CurveRecorder {
 public:
  explicit CurveRecorder(Seconds start);

  // `level` held from the last call until `now`; its time is ignored, and its evictions and
  // missed intervals are 0.
  void hold(const CurvePoint& level, Seconds now);
  void count_eviction();
  void count_missed();

  std::vector<CurvePoint> points() const;
  // The mean between two times, to the resolution of the points.
  CurvePoint mean(Seconds from, Seconds until) const;

 private:
  struct Sum {
    double time = 0;
    CurvePoint weighted;  // by time; evictions are counted
  };
  void halve();
  Sum& sum_at(double time);

  double start_ = 0;
  double now_ = 0;
  double width_ = 60;  // seconds of a point
  std::vector<Sum> sums_;
};

}  // namespace regatta::cluster_replay
