#include "regatta/platform/controller_service/end_signal.h"

#include <csignal>
#include <thread>
#include <utility>

#include <pthread.h>

namespace regatta::controller_service {

EndSignal::EndSignal() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  ::pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  std::thread([this, signals] {
    int number = 0;
    ::sigwait(&signals, &number);
    MutexLock lock(mutex_);
    has_come_ = true;
    if (work_) work_();
  }).detach();
}

bool EndSignal::has_come() const {
  MutexLock lock(mutex_);
  return has_come_;
}

void EndSignal::set_work(std::function<void()> work) {
  MutexLock lock(mutex_);
  work_ = std::move(work);
  if (has_come_ && work_) work_();
}

}  // namespace regatta::controller_service
