// store/commit_queue.h: commits in groups by a thread of its own: what arrives while one commit
// waits for the disk forms the next.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "regatta/base/core/result.h"
#include "regatta/base/core/units.h"
#include "regatta/platform/store/store.h"

namespace regatta::store {

struct CommitQueueOptions {
  std::size_t changes_max = 8192;  // of one commit, beyond its first transaction
  Seconds maintain_after{1.0};     // without a commit
  Seconds retry_after{0.5};        // of a commit for which the disk had no space
};

// The outcome of a commit. kExhausted: the disk is full, and the commit is tried again until
// it succeeds; other errors: nothing later will be committed either (see Store::commit()).
struct CommitReport {
  Revision durable = 0;  // all changes up to it are on disk; 0: none of this queue's
  Status status;
};

class CommitQueue {
 public:
  // `report` runs in the queue's thread after each commit, and after each failed one; the owner
  // posts it to its own loop. `store` belongs to the queue's thread.
  CommitQueue(std::unique_ptr<Store> store, CommitQueueOptions options,
              std::function<void(const CommitReport&)> report);
  // Commits what waits; on a full disk after one more try it is dropped, as nobody was told that it
  // is durable. No `report` runs after it.
  ~CommitQueue();
  CommitQueue(const CommitQueue&) = delete;
  CommitQueue& operator=(const CommitQueue&) = delete;

  // One transaction: all of it is in one commit. Never waits; after a failed commit it is dropped.
  // Revisions rise from one transaction to the next. Any thread, one at a time.
  void add(std::vector<Change> transaction);
  // Copies the store, after what was added before; commits wait meanwhile. `done` runs in the
  // queue's thread, and not after the queue is gone. Any thread.
  void copy_to(std::string path, std::function<void(const Status&)> done);
  // Changes that are not durable yet. Any thread.
  std::size_t waiting_changes() const;
  // The store's. Any thread.
  Seconds leads_until() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace regatta::store
