#include "regatta/platform/plan_service/plan_pool.h"

#include <atomic>
#include <cstddef>
#include <utility>

#include "regatta/base/http/work_pool.h"
#include "regatta/base/os/clock.h"

namespace regatta::plan_service {

struct PlanPool::Impl {
  Impl(http::EventLoop& loop, PlanPoolOptions options)
      : deadline(options.deadline),
        pool(loop, {.threads = options.threads,
                    .waiting_max = static_cast<std::size_t>(options.waiting_max),
                    .refusal = "too many plans are searched now; try again later"}) {}

  const Seconds deadline;
  std::atomic<bool> is_ended{false};
  http::WorkPool pool;  // ends first: its threads read what stands above
};

PlanPool::PlanPool(http::EventLoop& loop, PlanPoolOptions options)
    : impl_(std::make_unique<Impl>(loop, options)) {}

PlanPool::~PlanPool() {
  impl_->is_ended = true;
}

Status PlanPool::run(Work work, Done done) {
  const std::function<bool()> late = [impl = impl_.get(),
                                      deadline = os::monotonic_now() + impl_->deadline] {
    return impl->is_ended || os::monotonic_now() > deadline;
  };
  return impl_->pool.run([work = std::move(work), done = std::move(done), late] {
    auto result =
        late() ? Result<std::string>(Error{Code::kTimeout, "it waited too long; try again later"})
               : work(late);
    return std::function<void()>([done, result = std::move(result)] { done(result); });
  });
}

}  // namespace regatta::plan_service
