// rdma/internal/library.h: libibverbs, loaded at run time: the program starts without it. Compiled
// against the header of libibverbs-dev. Inline functions there (posting, polling) use the context
// and need no symbol; all others are called through this table.
#pragma once

#include <infiniband/verbs.h>

#include "regatta/base/core/result.h"

namespace regatta::rdma {

// Devices, ports and protection domains.
struct DeviceCalls {
  decltype(&::ibv_get_device_list) get_device_list = nullptr;
  decltype(&::ibv_free_device_list) free_device_list = nullptr;
  decltype(&::ibv_get_device_name) get_device_name = nullptr;
  decltype(&::ibv_open_device) open_device = nullptr;
  decltype(&::ibv_close_device) close_device = nullptr;
  decltype(&::ibv_query_device) query_device = nullptr;
  decltype(&::ibv_query_port) query_port = nullptr;
  decltype(&::_ibv_query_gid_ex) query_gid_ex = nullptr;
  decltype(&::ibv_alloc_pd) alloc_pd = nullptr;
  decltype(&::ibv_dealloc_pd) dealloc_pd = nullptr;
};

// Registered memory.
struct MemoryCalls {
  decltype(&::ibv_reg_mr) reg_mr = nullptr;
  decltype(&::ibv_dereg_mr) dereg_mr = nullptr;
};

// Completion queues and their events.
struct CompletionCalls {
  decltype(&::ibv_create_comp_channel) create_comp_channel = nullptr;
  decltype(&::ibv_destroy_comp_channel) destroy_comp_channel = nullptr;
  decltype(&::ibv_create_cq) create_cq = nullptr;
  decltype(&::ibv_destroy_cq) destroy_cq = nullptr;
  decltype(&::ibv_get_cq_event) get_cq_event = nullptr;
  decltype(&::ibv_ack_cq_events) ack_cq_events = nullptr;
  decltype(&::ibv_wc_status_str) wc_status_str = nullptr;
};

// Queue pairs, shared receive queues and address handles.
struct QueueCalls {
  decltype(&::ibv_create_srq) create_srq = nullptr;
  decltype(&::ibv_destroy_srq) destroy_srq = nullptr;
  decltype(&::ibv_create_qp) create_qp = nullptr;
  decltype(&::ibv_modify_qp) modify_qp = nullptr;
  decltype(&::ibv_destroy_qp) destroy_qp = nullptr;
  decltype(&::ibv_create_ah) create_ah = nullptr;
  decltype(&::ibv_destroy_ah) destroy_ah = nullptr;
};

struct Library {
  DeviceCalls devices;
  MemoryCalls memory;
  CompletionCalls completions;
  QueueCalls queues;
};

// Loaded once, then kept. kUnsupported when it is not there or too old.
Result<const Library*> load_library();

}  // namespace regatta::rdma
