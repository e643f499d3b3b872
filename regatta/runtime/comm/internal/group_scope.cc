#include "regatta/runtime/comm/internal/group_scope.h"

#include <algorithm>
#include <memory>
#include <utility>

namespace regatta::comm {
namespace {

thread_local std::unique_ptr<GroupScope> thread_scope;

}  // namespace

GroupScope* GroupScope::current() {
  return thread_scope.get();
}

Status GroupScope::refuse(const std::string& call) {
  if (thread_scope == nullptr) return {};
  return Error{Code::kInvalidInput,
               call + ": it waits for the other ranks: call it outside the group of calls"};
}

void GroupScope::open() {
  if (thread_scope == nullptr) thread_scope = std::make_unique<GroupScope>();
  ++thread_scope->depth_;
}

Result<Handle> GroupScope::close() {
  if (thread_scope == nullptr)
    return Error{Code::kInvalidInput, "group_end: no group is open: call group_start before"};
  if (--thread_scope->depth_ > 0) return Handle();
  const std::unique_ptr<GroupScope> ended = std::move(thread_scope);
  for (Batch& batch : ended->batches_)
    batch.world->submit(std::move(batch.operations));
  if (ended->states_.empty()) return Handle();
  if (ended->states_.size() == 1) return Handle(std::move(ended->states_.front()));
  auto all = std::make_shared<Handle::State>();
  all->parts = std::move(ended->states_);
  return Handle(std::move(all));
}

void GroupScope::add(const std::shared_ptr<World>& world, std::unique_ptr<Operation> operation) {
  states_.push_back(operation->handle);
  auto batch = std::find_if(batches_.begin(), batches_.end(),
                            [&](const Batch& one) { return one.world == world; });
  if (batch == batches_.end()) batch = batches_.insert(batches_.end(), Batch{world, {}});
  batch->operations.push_back(std::move(operation));
}

}  // namespace regatta::comm
