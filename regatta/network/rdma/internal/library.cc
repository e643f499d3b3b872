#include "regatta/network/rdma/internal/library.h"

#include <string>

#include <dlfcn.h>

#include "regatta/base/os/process.h"

namespace regatta::rdma {
namespace {

constexpr const char* kFile = "libibverbs.so.1";

bool find_all(void* library, DeviceCalls& calls) {
  return os::find_symbol(library, "ibv_get_device_list", calls.get_device_list) &&
         os::find_symbol(library, "ibv_free_device_list", calls.free_device_list) &&
         os::find_symbol(library, "ibv_get_device_name", calls.get_device_name) &&
         os::find_symbol(library, "ibv_open_device", calls.open_device) &&
         os::find_symbol(library, "ibv_close_device", calls.close_device) &&
         os::find_symbol(library, "ibv_query_device", calls.query_device) &&
         os::find_symbol(library, "ibv_query_port", calls.query_port) &&
         os::find_symbol(library, "_ibv_query_gid_ex", calls.query_gid_ex) &&
         os::find_symbol(library, "ibv_alloc_pd", calls.alloc_pd) &&
         os::find_symbol(library, "ibv_dealloc_pd", calls.dealloc_pd);
}

bool find_all(void* library, MemoryCalls& calls) {
  return os::find_symbol(library, "ibv_reg_mr", calls.reg_mr) &&
         os::find_symbol(library, "ibv_dereg_mr", calls.dereg_mr);
}

bool find_all(void* library, CompletionCalls& calls) {
  return os::find_symbol(library, "ibv_create_comp_channel", calls.create_comp_channel) &&
         os::find_symbol(library, "ibv_destroy_comp_channel", calls.destroy_comp_channel) &&
         os::find_symbol(library, "ibv_create_cq", calls.create_cq) &&
         os::find_symbol(library, "ibv_destroy_cq", calls.destroy_cq) &&
         os::find_symbol(library, "ibv_get_cq_event", calls.get_cq_event) &&
         os::find_symbol(library, "ibv_ack_cq_events", calls.ack_cq_events) &&
         os::find_symbol(library, "ibv_wc_status_str", calls.wc_status_str);
}

bool find_all(void* library, QueueCalls& calls) {
  return os::find_symbol(library, "ibv_create_srq", calls.create_srq) &&
         os::find_symbol(library, "ibv_destroy_srq", calls.destroy_srq) &&
         os::find_symbol(library, "ibv_create_qp", calls.create_qp) &&
         os::find_symbol(library, "ibv_modify_qp", calls.modify_qp) &&
         os::find_symbol(library, "ibv_destroy_qp", calls.destroy_qp) &&
         os::find_symbol(library, "ibv_create_ah", calls.create_ah) &&
         os::find_symbol(library, "ibv_destroy_ah", calls.destroy_ah);
}

Result<const Library*> load() {
  void* const library = dlopen(kFile, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr)
    return Error{Code::kUnsupported, std::string(kFile) + " is not here: install rdma-core"};
  static Library verbs;
  decltype(&::ibv_fork_init) fork_init = nullptr;
  const bool is_complete = find_all(library, verbs.devices) && find_all(library, verbs.memory) &&
                           find_all(library, verbs.completions) &&
                           find_all(library, verbs.queues) &&
                           os::find_symbol(library, "ibv_fork_init", fork_init);
  if (!is_complete)
    return Error{Code::kUnsupported,
                 std::string(kFile) + " is too old: install rdma-core 32 or later"};
  // A child of this process must not take pinned pages away; nothing to do on newer kernels.
  (void)fork_init();
  return &verbs;
}

}  // namespace

Result<const Library*> load_library() {
  static const Result<const Library*> loaded = load();
  return loaded;
}

}  // namespace regatta::rdma
