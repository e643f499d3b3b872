#include "integrations/torch/src/process_group.h"

#include <chrono>
#include <utility>

#include <torch/csrc/python_headers.h>

#include "integrations/torch/src/monitored_barrier.h"
#include "integrations/torch/src/tensors.h"

namespace regatta_torch {
namespace {

std::vector<std::uint8_t> bytes_of(const std::string& text) {
  return {text.begin(), text.end()};
}

std::string key_of(int rank) {
  return "regatta/endpoint/" + std::to_string(rank);
}

// The endpoints of all ranks, by the store; get() waits for those that are not there yet.
EndpointExchange exchange_by(const c10::intrusive_ptr<c10d::Store>& store, int rank, int size) {
  return [store, rank, size](const std::string& mine) {
    store->set(key_of(rank), bytes_of(mine));
    std::vector<std::string> texts;
    for (int peer = 0; peer < size; ++peer) {
      const std::vector<std::uint8_t> text = store->get(key_of(peer));
      texts.emplace_back(text.begin(), text.end());
    }
    return texts;
  };
}

// Lets go of Python's interpreter where this thread holds it: what is waited for may need it.
class WithoutInterpreter {
 public:
  WithoutInterpreter()
      : state_(Py_IsInitialized() != 0 && PyGILState_Check() != 0 ? PyEval_SaveThread() : nullptr) {
  }
  WithoutInterpreter(const WithoutInterpreter&) = delete;
  WithoutInterpreter& operator=(const WithoutInterpreter&) = delete;
  ~WithoutInterpreter() {
    if (state_ != nullptr) PyEval_RestoreThread(state_);
  }

 private:
  PyThreadState* const state_;
};

// Messages have no tags: those between two ranks come in the order in which they were sent.
void check_tag(const char* call, int tag) {
  TORCH_CHECK(tag == 0, "regatta: ", call, " with tag ", tag,
              ": messages between two ranks come in their order; use tag 0");
}

}  // namespace

c10::intrusive_ptr<ProcessGroup> ProcessGroup::connect(const c10::intrusive_ptr<c10d::Store>& store,
                                                       const ConnectOptions& options) {
  return c10::make_intrusive<ProcessGroup>(store, options);
}

ProcessGroup::ProcessGroup(const c10::intrusive_ptr<c10d::Store>& store,
                           const ConnectOptions& options)
    : TorchBase(options.rank, options.size),
      store_(store),
      timeout_s_(options.timeout_s),
      completer_(std::make_shared<Completer>()),
      all_{Comm::connect(options, exchange_by(store, options.rank, options.size)), options.rank,
           options.size},
      pairwise_{all_.comm->duplicate(), options.rank, options.size} {
  init();
}

ProcessGroup::~ProcessGroup() {
  const WithoutInterpreter without;
  coalesced_.clear();
  completer_->close();
  pairwise_.comm.reset();
  all_.comm.reset();
}

ProcessGroup::TorchWork ProcessGroup::begin(PendingOperation operation) {
  if (!operation.is_between_two) sequence_.fetch_add(1);
  WorkPtr work = Work::make(rank_, std::move(operation), completer_);
  if (is_coalescing_) coalesced_.push_back(work);
  return work;
}

ProcessGroup::TorchWork ProcessGroup::broadcast(Tensors& tensors,
                                                const c10d::BroadcastOptions& options) {
  return begin(regatta_torch::broadcast(all_, only("broadcast", tensors), options.rootRank));
}

ProcessGroup::TorchWork ProcessGroup::allreduce(Tensors& tensors,
                                                const c10d::AllreduceOptions& options) {
  only("allreduce", tensors);
  return begin(all_reduce(all_, tensors, options.reduceOp));
}

ProcessGroup::TorchWork ProcessGroup::allreduce_coalesced(
    Tensors& tensors, const c10d::AllreduceCoalescedOptions& options) {
  return begin(all_reduce(all_, tensors, options.reduceOp));
}

ProcessGroup::TorchWork ProcessGroup::reduce(Tensors& tensors, const c10d::ReduceOptions& options) {
  return begin(
      regatta_torch::reduce(all_, only("reduce", tensors), options.reduceOp, options.rootRank));
}

ProcessGroup::TorchWork ProcessGroup::allgather(std::vector<Tensors>& outputs, Tensors& inputs,
                                                const c10d::AllgatherOptions& /*options*/) {
  return begin(all_gather(all_, only("allgather", outputs), only("allgather", inputs)));
}

ProcessGroup::TorchWork ProcessGroup::_allgather_base(at::Tensor& output, at::Tensor& input,
                                                      const c10d::AllgatherOptions& /*options*/) {
  return begin(all_gather_whole(all_, {output}, {input}));
}

// outputs[rank][i]: the inputs[i] of the rank.
ProcessGroup::TorchWork ProcessGroup::allgather_coalesced(
    std::vector<Tensors>& outputs, Tensors& inputs, const c10d::AllgatherOptions& /*options*/) {
  TORCH_CHECK(outputs.size() == static_cast<std::size_t>(size_), "regatta: allgather_coalesced ",
              "takes ", size_, " lists, one of each rank, not ", outputs.size());
  for (const Tensors& list : outputs)
    TORCH_CHECK(list.size() == inputs.size(), "regatta: allgather_coalesced: a list of ",
                list.size(), " outputs stands beside ", inputs.size(), " inputs: give as many");
  std::vector<Tensors> of_input(inputs.size());
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    for (const Tensors& list : outputs)
      of_input[i].push_back(list[i]);
    check_tensor("allgather_coalesced", inputs[i]);
    check_parts("allgather_coalesced", of_input[i], size_, inputs[i]);
  }
  PendingOperation together;
  together.type = c10d::OpType::ALLGATHER_COALESCED;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    sequence_.fetch_add(1);
    together.parts.push_back(
        Work::make(rank_, all_gather(all_, of_input[i], inputs[i]), completer_));
    together.outputs.insert(together.outputs.end(), of_input[i].begin(), of_input[i].end());
  }
  return begin(std::move(together));
}

ProcessGroup::TorchWork ProcessGroup::gather(std::vector<Tensors>& outputs, Tensors& inputs,
                                             const c10d::GatherOptions& options) {
  Tensors none;
  Tensors& parts = all_.is_root(options.rootRank) ? only("gather", outputs) : none;
  return begin(regatta_torch::gather(all_, parts, only("gather", inputs), options.rootRank));
}

ProcessGroup::TorchWork ProcessGroup::scatter(Tensors& outputs, std::vector<Tensors>& inputs,
                                              const c10d::ScatterOptions& options) {
  Tensors none;
  Tensors& parts = all_.is_root(options.rootRank) ? only("scatter", inputs) : none;
  return begin(regatta_torch::scatter(all_, only("scatter", outputs), parts, options.rootRank));
}

ProcessGroup::TorchWork ProcessGroup::reduce_scatter(Tensors& outputs, std::vector<Tensors>& inputs,
                                                     const c10d::ReduceScatterOptions& options) {
  return begin(regatta_torch::reduce_scatter(all_, only("reduce_scatter", outputs),
                                             only("reduce_scatter", inputs), options.reduceOp));
}

ProcessGroup::TorchWork ProcessGroup::_reduce_scatter_base(
    at::Tensor& output, at::Tensor& input, const c10d::ReduceScatterOptions& options) {
  return begin(reduce_scatter_whole(all_, {output}, {input}, options.reduceOp));
}

ProcessGroup::TorchWork ProcessGroup::alltoall_base(at::Tensor& output, at::Tensor& input,
                                                    Rows& output_rows, Rows& input_rows,
                                                    const c10d::AllToAllOptions& /*options*/) {
  return begin(all_to_all_rows(all_, output, input, output_rows, input_rows));
}

ProcessGroup::TorchWork ProcessGroup::alltoall(Tensors& outputs, Tensors& inputs,
                                               const c10d::AllToAllOptions& /*options*/) {
  return begin(all_to_all(all_, outputs, inputs));
}

ProcessGroup::TorchWork ProcessGroup::send(Tensors& tensors, int to, int tag) {
  check_tag("send", tag);
  return begin(regatta_torch::send(pairwise_, only("send", tensors), to));
}

ProcessGroup::TorchWork ProcessGroup::recv(Tensors& tensors, int from, int tag) {
  check_tag("recv", tag);
  return begin(regatta_torch::recv(pairwise_, only("recv", tensors), from));
}

ProcessGroup::TorchWork ProcessGroup::barrier(const c10d::BarrierOptions& /*options*/) {
  return begin(regatta_torch::barrier(all_));
}

void ProcessGroup::monitoredBarrier(const c10d::BarrierOptions& options, bool wait_all_ranks) {
  const std::chrono::milliseconds timeout =
      options.timeout.count() > 0
          ? options.timeout
          : std::chrono::milliseconds(static_cast<std::int64_t>(timeout_s_ * 1000));
  monitored_barrier(*store_, {.rank = rank_,
                              .size = size_,
                              .number = monitored_barriers_++,
                              .timeout = timeout,
                              .names_all = wait_all_ranks});
}

#if TORCH_VERSION_MAJOR >= 2
ProcessGroup::TorchWork ProcessGroup::allgather_into_tensor_coalesced(
    Tensors& outputs, Tensors& inputs, const c10d::AllgatherOptions& /*options*/) {
  return begin(all_gather_whole(all_, outputs, inputs));
}

ProcessGroup::TorchWork ProcessGroup::reduce_scatter_tensor_coalesced(
    Tensors& outputs, Tensors& inputs, const c10d::ReduceScatterOptions& options) {
  return begin(reduce_scatter_whole(all_, outputs, inputs, options.reduceOp));
}

#if REGATTA_TORCH_COALESCES
void ProcessGroup::startCoalescing() {
  is_coalescing_ = true;
}

ProcessGroup::TorchWork ProcessGroup::endCoalescing() {
  is_coalescing_ = false;
  PendingOperation together;
  together.parts = std::exchange(coalesced_, {});
  return begin(std::move(together));
}
#endif
#endif

}  // namespace regatta_torch
