// sched/internal/job_shapes.h: numbers of the shapes of jobs: jobs of one shape fit at the same places
// or not.
#pragma once

#include <vector>

#include "regatta/platform/sched/internal/key_index.h"
#include "regatta/platform/sched/job_request.h"

namespace regatta::sched {

class JobShapes {
 public:
  // The number of the job's shape, from 0 in the order of the first call. The job outlives this.
  // Time: one for each role.
  int shape_of(const JobRequest& job);

  // Numbers given so far.
  int size() const { return static_cast<int>(examples_.size()); }

 private:
  std::vector<const JobRequest*> examples_;  // a job of each shape
  KeyIndex numbers_;
};

}  // namespace regatta::sched
