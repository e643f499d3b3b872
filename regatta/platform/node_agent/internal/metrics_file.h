// node_agent/internal/metrics_file.h: the metrics that a job writes on its node: lines of JSON in a
// file that the agent made for its replica. Format: docs/formats/submitted_job.md.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace regatta::node_agent {

// The name of the variable that names the file.
inline constexpr const char* kMetricsVariable = "REGATTA_METRICS_FILE";
std::string metrics_path(const std::string& run);

// One series of a job, thinned as it grows: at most kPointsMax points, evenly over the lines that
// came, and the last one.
class MetricSeries {
 public:
  static constexpr std::size_t kPointsMax = 1000;

  struct Point {
    std::int64_t step = 0;
    std::int64_t time_ms = 0;  // Unix; 0: its line does not say
    double value = 0;
  };

  // A step that is not after the last one takes the place of those from it on: the job continues
  // from an earlier checkpoint.
  void add(const Point& point);
  std::vector<Point> points() const;

  std::string unit;

 private:
  std::vector<Point> kept_;
  std::int64_t stride_ = 1;   // one of so many points is kept
  std::int64_t skipped_ = 0;  // since the last one that was kept
  Point last_;
  bool has_last_ = false;
};

// Lines in the order in which they were written. Those that are no metrics are left out: the file
// is the user's.
class MetricLines {
 public:
  static constexpr std::size_t kSeriesMax = 64;
  static constexpr std::size_t kNameBytesMax = 64;

  // Whole lines; the rest behind the last newline is left out.
  void add(std::string_view text);
  // {"series": [{"name", "unit", "steps", "times_ms", "values"}], "predicted": {...} or null}
  std::string json() const;

 private:
  void add_line(std::string_view line);

  std::map<std::string, MetricSeries> series_;
  std::string predicted_ = "null";  // JSON
};

// The metrics of the replica, from its first attempt on this node to this one: of each file the
// last 8 MiB. `run`: of the latest attempt, FOLDER/JOB.ATTEMPT.REPLICA.
std::string read_metrics(const std::string& run);

// Makes the empty file, for the user where one is given. False where it cannot be made.
bool make_metrics_file(const std::string& run, const unsigned* uid, const unsigned* gid);

// Gives the space of what read_metrics() does not read any more back to the file system, where it
// can do that; the places of the rest stay.
void trim_metrics(const std::string& run);

}  // namespace regatta::node_agent
