#include "lib/transport/verbs/verbs_library.h"

#include <dlfcn.h>

#include <cerrno>

#include "lib/base/shared_library.h"

namespace gxp {

namespace {

constexpr const char* kVerbsFile = "libibverbs.so.1";

void find_verbs(void* library, VerbsFunctions& f) {
  const auto take = [&](const char* name, auto& function) {
    find_function(library, "libibverbs", kVerbsFile, name, function);
  };
  take("ibv_get_device_list", f.get_device_list);
  take("ibv_free_device_list", f.free_device_list);
  take("ibv_open_device", f.open_device);
  take("ibv_close_device", f.close_device);
  take("ibv_query_device", f.query_device);
  take("ibv_query_port", f.query_port);
  take("_ibv_query_gid_table", f.query_gid_table);  // rdma-core 32, 2020
  take("ibv_alloc_pd", f.alloc_pd);
  take("ibv_dealloc_pd", f.dealloc_pd);
  take("ibv_reg_mr", f.reg_mr);
  take("ibv_reg_mr_iova2", f.reg_mr_iova2);
  f.reg_dmabuf_mr =
      reinterpret_cast<decltype(f.reg_dmabuf_mr)>(::dlsym(library, "ibv_reg_dmabuf_mr"));
  take("ibv_dereg_mr", f.dereg_mr);
  take("ibv_create_comp_channel", f.create_comp_channel);
  take("ibv_destroy_comp_channel", f.destroy_comp_channel);
  take("ibv_create_cq", f.create_cq);
  take("ibv_destroy_cq", f.destroy_cq);
  take("ibv_get_cq_event", f.get_cq_event);
  take("ibv_ack_cq_events", f.ack_cq_events);
  take("ibv_create_qp", f.create_qp);
  take("ibv_modify_qp", f.modify_qp);
  take("ibv_destroy_qp", f.destroy_qp);
  take("ibv_get_async_event", f.get_async_event);
  take("ibv_ack_async_event", f.ack_async_event);
  take("ibv_wc_status_str", f.wc_status_str);
  take("ibv_event_type_str", f.event_type_str);
  take("ibv_fork_init", f.fork_init);
  f.is_fork_initialized = reinterpret_cast<int (*)()>(::dlsym(library, "ibv_is_fork_initialized"));
}

}  // namespace

VerbsFunctions load_verbs() {
  VerbsFunctions functions{};
  find_verbs(open_library("libibverbs", kVerbsFile, "install libibverbs1 and ibverbs-providers"),
             functions);
  // ibv_fork_init() takes the pages away from children even where the kernel copies them.
  constexpr int kForkUnneeded = 2;  // enum ibv_fork_status
  const bool kernel_copies =
      functions.is_fork_initialized != nullptr && functions.is_fork_initialized() == kForkUnneeded;
  // Fails once this process has registered memory; then whoever did has decided.
  if (!kernel_copies) static_cast<void>(functions.fork_init());
  return functions;
}

void fail_verbs(ErrorKind kind, std::string_view act, std::string_view device, int error_number) {
  fail(kind, "{} on {}: {}", act, device, system_text(error_number));
}

}  // namespace gxp
