// os/signal_masked_thread.h: a thread beside those of a program: signals stay for the program's
// own. Source: pthread_sigmask(3): a thread begins with the mask of who starts it.
#pragma once

#include <csignal>
#include <thread>
#include <utility>

namespace regatta::os {

// Header only: libraries that are put into foreign programs use it, too.
template <typename Work>
std::thread signal_masked_thread(Work&& work) {
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  std::thread thread(std::forward<Work>(work));
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return thread;
}

}  // namespace regatta::os
