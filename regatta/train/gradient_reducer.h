// train/gradient_reducer.h: sums the gradients of the data-parallel replicas, in buckets that leave
// while backward is still computing the later ones.
#pragma once

#include <cstdint>
#include <vector>

#include "regatta/coll/communicator.h"
#include "regatta/train/phase_clock.h"
#include "regatta/train/tensor.h"

namespace regatta::train {

class GradientReducer {
 public:
  // gradient: flat fp32, in the order in which backward finishes it. `communicator`: null when
  // there is one replica. overlap = false: everything leaves in finish().
  GradientReducer(coll::Communicator* communicator, Tensor gradient, bool overlap,
                  PhaseClock& clock);

  // All elements before `end` are final: submits the buckets that are complete.
  void ready(std::int64_t end);

  // Submits the rest and waits for all; the time counts as kDpComm.
  Status finish();

 private:
  void submit_until(std::int64_t end);

  coll::Communicator* communicator_;
  Tensor gradient_;
  bool overlap_;
  PhaseClock& clock_;
  std::int64_t submitted_ = 0;
  std::vector<coll::Handle> handles_;
};

}  // namespace regatta::train
