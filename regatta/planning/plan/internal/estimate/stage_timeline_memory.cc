#include "regatta/planning/plan/internal/estimate/stage_timeline_memory.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "regatta/base/core/ids.h"

namespace regatta::plan {
namespace {

class Line {
 public:
  Line(const StageMemory& stages, int stage) : stages_(stages), stage_(stage) {
    const cost::GpuMemory memory = stages.of(stage);
    always_ = memory.total() - memory.activations;
    line_ = {{.at = {}, .bytes = always_}};
  }

  // One micro-batch more (1) or less (-1), of a part where it keeps `kept`.
  void change(Seconds at, int count, double kept) {
    count_ += count;
    kept_ = count_ == 0 ? 0 : kept_ + count * kept;  // nothing is left of rounding
    const double bytes =
        always_ + stages_.held(stages_.blocks_of(stage_), kept_) + count_ * stages_.output();
    // Memory is freed before other memory is taken at the same time.
    if (line_.back().at == at)
      line_.back().bytes = bytes;
    else
      line_.push_back({.at = at, .bytes = bytes});
  }

  MemoryCurve finish() && { return std::move(line_); }

 private:
  const StageMemory& stages_;
  int stage_;
  double always_ = 0;
  int count_ = 0;
  double kept_ = 0;
  MemoryCurve line_;
};

bool ends_a_micro_batch(StageWork work) {
  return work == StageWork::kBackward || work == StageWork::kWeightGradient;
}

}  // namespace

std::vector<MemoryCurve> memory_over_time(const StageTimeline& timeline,
                                          const StageMemory& stages) {
  std::vector<MemoryCurve> lines;
  for (std::size_t row = 0; row < timeline.rows.size(); ++row) {
    const int stage = static_cast<int>(row);
    std::vector<double> kept;
    for (int part = 0; part < pipeline::parts_of(stages.shape()); ++part)
      kept.push_back(stages.kept(stages.blocks_of(stage, part)));
    Line line(stages, stage);
    for (const StageSpan& span : timeline.rows[row]) {
      const double part = kept[as_index(span.part)];
      if (span.work == StageWork::kForward) line.change(span.start, 1, part);
      if (ends_a_micro_batch(span.work)) line.change(span.end, -1, part);
    }
    lines.push_back(std::move(line).finish());
  }
  return lines;
}

double peak_of(const MemoryCurve& line) {
  double peak = 0;
  for (const MemoryPoint& point : line)
    peak = std::max(peak, point.bytes);
  return peak;
}

}  // namespace regatta::plan
