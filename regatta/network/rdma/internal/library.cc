#include "regatta/network/rdma/internal/library.h"

#include <string>

#include <dlfcn.h>

namespace regatta::rdma {
namespace {

constexpr const char* kFile = "libibverbs.so.1";

template <typename Function>
bool find(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(library, name));
  return function != nullptr;
}

// True when it has all of them.
bool find_all(void* library, Library& verbs) {
  return find(library, "ibv_get_device_list", verbs.get_device_list) &&
         find(library, "ibv_free_device_list", verbs.free_device_list) &&
         find(library, "ibv_get_device_name", verbs.get_device_name) &&
         find(library, "ibv_open_device", verbs.open_device) &&
         find(library, "ibv_close_device", verbs.close_device) &&
         find(library, "ibv_query_device", verbs.query_device) &&
         find(library, "ibv_query_port", verbs.query_port) &&
         find(library, "_ibv_query_gid_ex", verbs.query_gid_ex) &&
         find(library, "ibv_alloc_pd", verbs.alloc_pd) &&
         find(library, "ibv_dealloc_pd", verbs.dealloc_pd) &&
         find(library, "ibv_reg_mr", verbs.reg_mr) &&
         find(library, "ibv_dereg_mr", verbs.dereg_mr) &&
         find(library, "ibv_create_comp_channel", verbs.create_comp_channel) &&
         find(library, "ibv_destroy_comp_channel", verbs.destroy_comp_channel) &&
         find(library, "ibv_create_cq", verbs.create_cq) &&
         find(library, "ibv_destroy_cq", verbs.destroy_cq) &&
         find(library, "ibv_get_cq_event", verbs.get_cq_event) &&
         find(library, "ibv_ack_cq_events", verbs.ack_cq_events) &&
         find(library, "ibv_create_srq", verbs.create_srq) &&
         find(library, "ibv_destroy_srq", verbs.destroy_srq) &&
         find(library, "ibv_create_qp", verbs.create_qp) &&
         find(library, "ibv_modify_qp", verbs.modify_qp) &&
         find(library, "ibv_destroy_qp", verbs.destroy_qp) &&
         find(library, "ibv_create_ah", verbs.create_ah) &&
         find(library, "ibv_destroy_ah", verbs.destroy_ah) &&
         find(library, "ibv_wc_status_str", verbs.wc_status_str) &&
         find(library, "ibv_fork_init", verbs.fork_init);
}

Result<const Library*> load() {
  void* const library = dlopen(kFile, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr)
    return Error{Code::kUnsupported, std::string(kFile) + " is not here: install rdma-core"};
  static Library verbs;
  if (!find_all(library, verbs))
    return Error{Code::kUnsupported,
                 std::string(kFile) + " is too old: install rdma-core 32 or later"};
  // A child of this process must not take pinned pages away; nothing to do on newer kernels.
  (void)verbs.fork_init();
  return &verbs;
}

}  // namespace

Result<const Library*> load_library() {
  static const Result<const Library*> loaded = load();
  return loaded;
}

}  // namespace regatta::rdma
