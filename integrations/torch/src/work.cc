#include "integrations/torch/src/work.h"

#include <string>
#include <utility>

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <pthread.h>

namespace regatta_torch {
namespace {

// How long a work without a waiting thread may stay incomplete after its end.
constexpr std::chrono::milliseconds kReapEvery{50};
constexpr std::chrono::microseconds kLookEvery{100};

std::exception_ptr exception_of(const regatta_coll_error& error) {
  try {
    check(error.status, error);
  } catch (...) {
    return std::current_exception();
  }
  return nullptr;
}

}  // namespace

Completer::Completer() : thread_([this] { run(); }) {
  pthread_setname_np(thread_.native_handle(), "regatta-torch");
}

void Completer::close() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    must_end_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void Completer::keep(const WorkPtr& work) {
  const std::lock_guard lock(mutex_);
  kept_.emplace(work.get(), work);
  // The first one starts the thread's watch; the others need not wake it.
  if (kept_.size() == 1) changed_.notify_all();
}

void Completer::drop(const Work* work) {
  WorkPtr last;  // freed without the lock
  const std::lock_guard lock(mutex_);
  if (const auto found = kept_.find(work); found != kept_.end()) {
    last = std::move(found->second);
    kept_.erase(found);
  }
}

void Completer::complete_soon(const WorkPtr& work) {
  const std::lock_guard lock(mutex_);
  completing_soon_.push_back(work);
  changed_.notify_all();
}

void Completer::run() {
  std::unique_lock lock(mutex_);
  while (!must_end_ || !completing_soon_.empty()) {
    if (!completing_soon_.empty()) {
      WorkPtr first = std::move(completing_soon_.front());
      completing_soon_.pop_front();
      lock.unlock();
      first->complete();
      first.reset();
      lock.lock();
    } else if (kept_.empty()) {
      changed_.wait(lock);
    } else if (changed_.wait_for(lock, kReapEvery) == std::cv_status::timeout) {
      lock.unlock();
      reap();
      lock.lock();
    }
  }
  // Nobody begins anything any more.
  std::vector<WorkPtr> left;
  for (const auto& [key, work] : kept_)
    left.push_back(work);
  lock.unlock();
  for (const WorkPtr& work : left)
    work->complete();
}

// Ends the works that are over.
void Completer::reap() {
  std::vector<WorkPtr> works;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [key, work] : kept_)
      works.push_back(work);
  }
  for (const WorkPtr& work : works)
    work->isCompleted();
}

WorkPtr Work::make(int rank, PendingOperation operation,
                   const std::shared_ptr<Completer>& completer) {
  auto work = c10::make_intrusive<Work>(rank, std::move(operation), completer);
  completer->keep(work);
  return work;
}

Work::Work(int rank, PendingOperation operation, const std::shared_ptr<Completer>& completer)
    : c10d::Work(rank, operation.type, operation.title),
      operation_(std::move(operation)),
      completer_(completer) {}

bool Work::is_settled() {
  const std::lock_guard lock(mutex_);
  return completed_;
}

// Never waits, as the caller may hold the interpreter that another thread needs to settle.
bool Work::isCompleted() {
  if (is_settled()) return true;
  std::exception_ptr error;
  if (is_claimed_.load() || !has_ended(error)) return is_settled();
  return settle(error) || is_settled();
}

// Looks without waiting; the error is the first one.
bool Work::has_ended(std::exception_ptr& error) {
  for (const CommHandle& handle : operation_.handles) {
    std::int32_t done = 0;
    regatta_coll_error why{};
    regatta_coll_test(handle.get(), &done, &why);
    if (done == 0) return false;
    if (error == nullptr) error = exception_of(why);
  }
  for (const WorkPtr& part : operation_.parts) {
    if (!part->isCompleted()) return false;
    if (error == nullptr) error = part->exception();
  }
  return true;
}

void Work::await(std::exception_ptr& error) {
  for (const CommHandle& handle : operation_.handles) {
    regatta_coll_error why{};
    regatta_coll_wait(handle.get(), &why);
    if (error == nullptr) error = exception_of(why);
  }
  for (const WorkPtr& part : operation_.parts) {
    part->complete();
    if (error == nullptr) error = part->exception();
  }
}

// The operation has ended: the first thread that says so puts the results in place. False: it was
// another one, which may still be at it.
bool Work::settle(std::exception_ptr error) {
  if (is_claimed_.exchange(true)) return false;
  try {
    const at::NoGradGuard no_grad;
    if (error == nullptr && operation_.place) operation_.place();
  } catch (...) {
    error = std::current_exception();
  }
  finish(error);
  mark_future();
  // The last copy of a tensor may need Python's interpreter to go.
  operation_.place = nullptr;
  operation_.buffers.clear();
  if (const auto completer = completer_.lock()) completer->drop(this);
  return true;
}

void Work::complete() {
  if (is_settled()) return;
  std::exception_ptr error;
  await(error);
  if (settle(error)) return;
  std::unique_lock lock(mutex_);
  cv_.wait(lock, [this] { return completed_; });
}

bool Work::wait(std::chrono::milliseconds timeout) {
  if (timeout.count() > 0) {
    const auto deadline = std::chrono::steady_clock::now() + timeout;
    while (!isCompleted()) {
      TORCH_CHECK(std::chrono::steady_clock::now() < deadline,
                  "regatta: ", c10d::opTypeToString(operation_.type), " did not end within ",
                  timeout.count(), " ms: see what the other ranks do, or wait longer");
      std::this_thread::sleep_for(kLookEvery);
    }
  } else {
    complete();
  }
  const std::lock_guard lock(mutex_);
  if (exception_ != nullptr) std::rethrow_exception(exception_);
  return true;
}

std::vector<at::Tensor> Work::result() {
  TORCH_CHECK(is_settled(), "regatta: the operation has not ended: wait() before result()");
  return operation_.outputs;
}

c10::intrusive_ptr<c10::ivalue::Future> Work::getFuture() {
  std::call_once(future_once_, [this] {
    auto future =
        c10::make_intrusive<c10::ivalue::Future>(c10::ListType::create(c10::TensorType::get()));
    bool has_ended = false;
    {
      const std::lock_guard lock(mutex_);
      future_ = std::move(future);
      has_ended = completed_;
    }
    if (has_ended) return mark_future();
    auto self = c10::intrusive_ptr<Work>::unsafe_reclaim_from_nonowning(this);
    const auto completer = completer_.lock();
    // A send or a receive may take for ever and must not block the other works.
    if (operation_.is_between_two || completer == nullptr)
      std::thread([self] { self->complete(); }).detach();
    else
      completer->complete_soon(self);
  });
  const std::lock_guard lock(mutex_);
  return future_;
}

// Callbacks of the future run here, without a lock.
void Work::mark_future() {
  c10::intrusive_ptr<c10::ivalue::Future> future;
  std::exception_ptr error;
  {
    const std::lock_guard lock(mutex_);
    if (future_ == nullptr || is_marked_) return;
    is_marked_ = true;
    future = future_;
    error = exception_;
  }
  if (error != nullptr)
    future->setErrorIfNeeded(error);
  else
    future->markCompleted(c10::IValue(operation_.outputs));
}

}  // namespace regatta_torch
