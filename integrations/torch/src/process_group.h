// torch/process_group.h: the backend "regatta" as torch calls it: a c10d::ProcessGroup up to torch
// 1.13, a c10d::Backend from 2.0 on. Thin: it unpacks the arguments for operations.h.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <torch/csrc/distributed/c10d/Store.hpp>
#include <torch/csrc/distributed/c10d/Types.hpp>
#include <torch/csrc/distributed/c10d/Work.hpp>
#include <torch/version.h>
#if TORCH_VERSION_MAJOR >= 2
#include <torch/csrc/distributed/c10d/Backend.hpp>
#else
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>
#endif

#include "integrations/torch/src/comm.h"
#include "integrations/torch/src/operations.h"
#include "integrations/torch/src/work.h"

// From 2.1 on a backend gives one work for all calls between startCoalescing() and endCoalescing().
#define REGATTA_TORCH_COALESCES \
  (TORCH_VERSION_MAJOR > 2 || (TORCH_VERSION_MAJOR == 2 && TORCH_VERSION_MINOR >= 1))

namespace regatta_torch {

#if TORCH_VERSION_MAJOR >= 2
using TorchBase = c10d::Backend;
#else
using TorchBase = c10d::ProcessGroup;
#endif

class ProcessGroup final : public TorchBase {
 public:
  using TorchWork = c10::intrusive_ptr<c10d::Work>;
  using Rows = std::vector<std::int64_t>;

  // Meets the other ranks through the store.
  static c10::intrusive_ptr<ProcessGroup> connect(const c10::intrusive_ptr<c10d::Store>& store,
                                                  const ConnectOptions& options);
  ProcessGroup(const c10::intrusive_ptr<c10d::Store>& store, const ConnectOptions& options);
  // Waits for the operations under way.
  ~ProcessGroup() override;

  const std::string getBackendName() const override { return "regatta"; }

  TorchWork broadcast(Tensors& tensors, const c10d::BroadcastOptions& options) override;
  TorchWork allreduce(Tensors& tensors, const c10d::AllreduceOptions& options) override;
  TorchWork allreduce_coalesced(Tensors& tensors,
                                const c10d::AllreduceCoalescedOptions& options) override;
  TorchWork reduce(Tensors& tensors, const c10d::ReduceOptions& options) override;
  TorchWork allgather(std::vector<Tensors>& outputs, Tensors& inputs,
                      const c10d::AllgatherOptions& options) override;
  TorchWork _allgather_base(at::Tensor& output, at::Tensor& input,
                            const c10d::AllgatherOptions& options) override;
  TorchWork allgather_coalesced(std::vector<Tensors>& outputs, Tensors& inputs,
                                const c10d::AllgatherOptions& options) override;
  TorchWork gather(std::vector<Tensors>& outputs, Tensors& inputs,
                   const c10d::GatherOptions& options) override;
  TorchWork scatter(Tensors& outputs, std::vector<Tensors>& inputs,
                    const c10d::ScatterOptions& options) override;
  TorchWork reduce_scatter(Tensors& outputs, std::vector<Tensors>& inputs,
                           const c10d::ReduceScatterOptions& options) override;
  TorchWork _reduce_scatter_base(at::Tensor& output, at::Tensor& input,
                                 const c10d::ReduceScatterOptions& options) override;
  TorchWork alltoall_base(at::Tensor& output, at::Tensor& input, Rows& output_rows,
                          Rows& input_rows, const c10d::AllToAllOptions& options) override;
  TorchWork alltoall(Tensors& outputs, Tensors& inputs,
                     const c10d::AllToAllOptions& options) override;
  TorchWork send(Tensors& tensors, int to, int tag) override;
  TorchWork recv(Tensors& tensors, int from, int tag) override;
  TorchWork barrier(const c10d::BarrierOptions& options) override;

  // Through the store, so that it works while collectives are stuck: rank 0 throws an error that
  // names who is missing, the others pass it on.
  void monitoredBarrier(const c10d::BarrierOptions& options, bool wait_all_ranks) override;
  // The operations of a group are numbered from 0 on all ranks: there is nothing to agree on.
  void setSequenceNumberForGroup() override {}
  std::uint64_t getSequenceNumberForGroup() override { return sequence_.load(); }

#if TORCH_VERSION_MAJOR >= 2
  // Not in every 2.x, so without `override`.
  virtual bool supportsCoalescing() const {
    return true;
  }
  virtual TorchWork allgather_into_tensor_coalesced(Tensors& outputs, Tensors& inputs,
                                                    const c10d::AllgatherOptions& options);
  virtual TorchWork reduce_scatter_tensor_coalesced(Tensors& outputs, Tensors& inputs,
                                                    const c10d::ReduceScatterOptions& options);
#endif
#if REGATTA_TORCH_COALESCES
  void startCoalescing() override;
  // The work that ends with all that was begun since startCoalescing().
  TorchWork endCoalescing() override;
#endif

 private:
  TorchWork begin(PendingOperation operation);

  const c10::intrusive_ptr<c10d::Store> store_;
  const double timeout_s_;
  const std::shared_ptr<Completer> completer_;
  RankGroup all_;       // for collectives
  RankGroup pairwise_;  // for messages between two ranks, which collectives must not meet
  std::atomic<std::uint64_t> sequence_ = 0;
  std::uint64_t monitored_barriers_ = 0;
  bool is_coalescing_ = false;
  std::vector<WorkPtr> coalesced_;
};

}  // namespace regatta_torch
