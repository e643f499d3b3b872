// plan_service/plan_pool.h: threads beside the controller's loop that plan: few, with a bounded
// queue and a deadline, so that forms cannot keep the controller from its work.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "regatta/base/core/result.h"
#include "regatta/base/core/units.h"
#include "regatta/base/http/event_loop.h"

namespace regatta::plan_service {

struct PlanPoolOptions {
  int threads = 1;
  int waiting_max = 8;   // requests that wait for a thread
  Seconds deadline{20};  // of a request, from its arrival
};

// Belongs to the loop's thread, and the loop outlives it.
class PlanPool {
 public:
  // `late`: asks whether the deadline is over.
  using Work = std::function<Result<std::string>(const std::function<bool()>& late)>;
  using Done = std::function<void(const Result<std::string>&)>;

  PlanPool(http::EventLoop& loop, PlanPoolOptions options);
  ~PlanPool();  // waits for the work under way, which is late from now on; calls no `done` any more
  PlanPool(const PlanPool&) = delete;
  PlanPool& operator=(const PlanPool&) = delete;

  // `done` gets the result in the loop's thread. kExhausted: too many wait.
  Status run(Work work, Done done);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace regatta::plan_service
