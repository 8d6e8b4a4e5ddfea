// libibverbs, loaded at run time; gxp links no RDMA library.
#pragma once

#include <infiniband/verbs.h>

#include <memory>
#include <string>
#include <string_view>

#include "lib/base/error.h"

namespace gxp {

// The functions in the library; others are inline and go through the context.
struct VerbsFunctions {
  decltype(&::ibv_get_device_list) get_device_list;
  decltype(&::ibv_free_device_list) free_device_list;
  decltype(&::ibv_open_device) open_device;
  decltype(&::ibv_close_device) close_device;
  decltype(&::ibv_query_device) query_device;
  decltype(&::ibv_query_port) query_port;
  decltype(&::_ibv_query_gid_table) query_gid_table;
  decltype(&::ibv_alloc_pd) alloc_pd;
  decltype(&::ibv_dealloc_pd) dealloc_pd;
  ibv_mr* (*reg_mr)(ibv_pd*, void*, size_t, int);
  decltype(&::ibv_reg_mr_iova2) reg_mr_iova2;
  // Null before rdma-core 34 (2021).
  decltype(&::ibv_reg_dmabuf_mr) reg_dmabuf_mr;
  decltype(&::ibv_dereg_mr) dereg_mr;
  decltype(&::ibv_create_comp_channel) create_comp_channel;
  decltype(&::ibv_destroy_comp_channel) destroy_comp_channel;
  decltype(&::ibv_create_cq) create_cq;
  decltype(&::ibv_destroy_cq) destroy_cq;
  decltype(&::ibv_get_cq_event) get_cq_event;
  decltype(&::ibv_ack_cq_events) ack_cq_events;
  decltype(&::ibv_create_qp) create_qp;
  decltype(&::ibv_modify_qp) modify_qp;
  decltype(&::ibv_destroy_qp) destroy_qp;
  decltype(&::ibv_get_async_event) get_async_event;
  decltype(&::ibv_ack_async_event) ack_async_event;
  decltype(&::ibv_wc_status_str) wc_status_str;
  decltype(&::ibv_event_type_str) event_type_str;
  decltype(&::ibv_fork_init) fork_init;
  int (*is_fork_initialized)();  // may be null: rdma-core 35, 2021
};

// Loads the library, which stays loaded, and makes memory that it registers safe from fork(): the
// parent's pages stay where the devices use them. Since Linux 5.12 the child gets copies of them.
// Before, or where the library is too old to tell, it has no such pages: what is registered at that
// time it must not touch, which a child that calls exec() does not.
// kUnavailable: there is none here, or it lacks a function.
VerbsFunctions load_verbs();

// An object of the library with the function that ends it.
template <class Object>
using VerbsHandle = std::unique_ptr<Object, int (*)(Object*)>;

// Throws `kind` with the system's text: "ACT on DEVICE: Cannot allocate memory".
[[noreturn]] void fail_verbs(ErrorKind kind, std::string_view act, std::string_view device,
                             int error_number);

// Takes what a function of the library has made; a null pointer is errno's error, kDevice.
template <class Object>
VerbsHandle<Object> own_verbs(Object* object, int (*end)(Object*), std::string_view act,
                              std::string_view device) {
  if (object == nullptr) fail_verbs(ErrorKind::kDevice, act, device, errno);
  return {object, end};
}

}  // namespace gxp
