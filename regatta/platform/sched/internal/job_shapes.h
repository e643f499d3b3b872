// sched/internal/job_shapes.h: numbers of the shapes of jobs: jobs of one shape fit at the same
// places or not.
#pragma once

#include <string>
#include <vector>

#include "regatta/platform/sched/internal/key_index.h"
#include "regatta/platform/sched/job_request.h"

namespace regatta::sched {

class JobShapes {
 public:
  // The number of the job's shape, from 0 in the order of the first call. `kinds`: the kinds of
  // duty of a job that may share devices, as text. Time: one for each role.
  int shape_of(const JobRequest& job, const std::string& kinds = "");

  // Numbers given so far.
  int size() const { return static_cast<int>(examples_.size()); }

 private:
  struct Example {
    JobRequest job;
    std::string kinds;
  };
  std::vector<Example> examples_;  // of each shape
  KeyIndex numbers_;
};

}  // namespace regatta::sched
