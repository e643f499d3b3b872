// torch/work.h: an operation as torch holds it (c10d::Work). The first thread that sees its end
// puts the results in place: the caller that waits or tests, else the thread of the Completer.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <unordered_map>
#include <vector>

// First: clang 14 in C++20 needs the whole type before other headers use it in vectors.
#include <ATen/core/ivalue.h>
#include <torch/csrc/distributed/c10d/Work.hpp>

#include "integrations/torch/src/comm.h"

namespace regatta_torch {

class Work;
using WorkPtr = c10::intrusive_ptr<Work>;

// A call under way.
struct PendingOperation {
  c10d::OpType type = c10d::OpType::UNKNOWN;
  const char* title = nullptr;  // for the profiler
  std::shared_ptr<Comm> comm;   // lives as long as the handles
  std::vector<CommHandle> handles;
  std::vector<WorkPtr> parts;       // of a coalesced call, which has no handles of its own
  std::vector<at::Tensor> buffers;  // alive until the end
  std::vector<at::Tensor> outputs;  // the value of the future
  std::function<void()> place;      // puts the results where the caller wants them
  bool is_between_two = false;      // a send or a receive
};

// Keeps the works of one process group alive that no caller holds, and completes those whose
// futures are awaited.
class Completer {
 public:
  Completer();
  Completer(const Completer&) = delete;
  Completer& operator=(const Completer&) = delete;
  ~Completer() { close(); }

  // Waits for the works under way, and ends the thread. Not from that thread.
  void close();
  void keep(const WorkPtr& work);
  void drop(const Work* work);
  // Completes the work as soon as possible, in the order of these calls.
  void complete_soon(const WorkPtr& work);

 private:
  void run();
  void reap();

  std::mutex mutex_;  // guards the following
  std::condition_variable changed_;
  std::unordered_map<const Work*, WorkPtr> kept_;
  std::deque<WorkPtr> completing_soon_;
  bool must_end_ = false;
  std::thread thread_;  // the last: it uses all the others
};

class Work final : public c10d::Work {
 public:
  // Registers the work with the completer.
  static WorkPtr make(int rank, PendingOperation operation,
                      const std::shared_ptr<Completer>& completer);

  Work(int rank, PendingOperation operation, const std::shared_ptr<Completer>& completer);

  bool isCompleted() override;
  bool wait(std::chrono::milliseconds timeout = kNoTimeout) override;
  void synchronize() override { wait(); }
  std::vector<at::Tensor> result() override;
  c10::intrusive_ptr<c10::ivalue::Future> getFuture() override;

  // Like wait(), but the error stays inside.
  void complete();

 private:
  bool has_ended(std::exception_ptr& error);
  void await(std::exception_ptr& error);
  bool settle(std::exception_ptr error);
  void mark_future();
  bool is_settled();

  PendingOperation operation_;
  const std::weak_ptr<Completer> completer_;
  std::atomic<bool> is_claimed_ = false;
  std::once_flag future_once_;
  // With the mutex of the base:
  c10::intrusive_ptr<c10::ivalue::Future> future_;
  bool is_marked_ = false;
};

}  // namespace regatta_torch
