// collective/internal/chunk_window.h: processes a vector in chunks, several of them at the same
// time, so that the parts of an algorithm overlap and chunks share memory.
#pragma once

#include <cstddef>
#include <vector>

#include "regatta/model/collective/schedule.h"

namespace regatta::collective {

// Chunks of a vector are at least this long.
constexpr std::size_t kChunkBytesMin = std::size_t{1} << 20;
// Chunks that a rank works on at once: one inside, one or two between servers, one inside.
constexpr std::size_t kChunksAhead = 4;

// Receives that a rank offers to each neighbour ahead of the one that it works on.
constexpr std::size_t kReceivesAhead = 4;

class ChunkWindow {
 public:
  // `ahead` chunks are under way at once.
  ChunkWindow(CollectiveSchedule& schedule, std::size_t ahead)
      : schedule_(schedule), ahead_(ahead) {}

  // The chunk whose steps are added now, from 0, and the index of its memory, below `ahead`.
  std::size_t chunk() const { return ends_.size(); }
  std::size_t slot() const { return chunk() % ahead_; }

  // The step belongs to the chunk: it waits for the end of the chunk that used the memory before.
  StepIndex add(StepIndex step) {
    if (ends_.size() >= ahead_) schedule_.wait_for(step, ends_[ends_.size() - ahead_]);
    steps_.push_back(step);
    return step;
  }
  // All steps of the chunk were added.
  void end_chunk() {
    const StepIndex end = schedule_.add({.kind = StepKind::kCopy});
    for (const StepIndex step : steps_)
      schedule_.wait_for(end, step);
    steps_.clear();
    ends_.push_back(end);
  }
  // The step waits for all chunks so far.
  void wait_for_all(StepIndex step) {
    for (const StepIndex end : ends_)
      schedule_.wait_for(step, end);
  }

 private:
  CollectiveSchedule& schedule_;
  std::size_t ahead_;
  std::vector<StepIndex> steps_;  // of the chunk under way
  std::vector<StepIndex> ends_;   // of those before
};

}  // namespace regatta::collective
