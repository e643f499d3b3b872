// comm/internal/group_scope.h: the calls of a thread that begin together (group_calls()).
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "regatta/runtime/comm/communicator.h"
#include "regatta/runtime/comm/internal/engine/operation.h"
#include "regatta/runtime/comm/internal/engine/world.h"

namespace regatta::comm {

class GroupScope {
 public:
  // The group of this thread; null outside groups.
  static GroupScope* current();
  // Opens one, or a nested level of it.
  static void open();
  // The handle of all calls at the outermost level, else an empty one. kInvalidInput: none is open.
  static Result<Handle> close();

  // Nothing in a group may wait for other ranks: kInvalidInput where the thread has one open.
  static Status refuse(const std::string& call);

  void add(const std::shared_ptr<World>& world, std::unique_ptr<Operation> operation);
  // A call that has begun, or failed.
  void add(std::shared_ptr<Handle::State> state) { states_.push_back(std::move(state)); }

 private:
  struct Batch {
    std::shared_ptr<World> world;
    std::vector<std::unique_ptr<Operation>> operations;
  };

  int depth_ = 0;
  std::vector<Batch> batches_;
  std::vector<std::shared_ptr<Handle::State>> states_;
};

}  // namespace regatta::comm
