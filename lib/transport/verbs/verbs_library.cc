#include "lib/transport/verbs/verbs_library.h"

#include "lib/base/shared_library.h"

namespace gxp {

VerbsFunctions load_verbs() {
  const SharedLibrary library("libibverbs", "libibverbs.so.1",
                              "install libibverbs1 and ibverbs-providers");
  VerbsFunctions f{};
  library.find("ibv_get_device_list", f.get_device_list);
  library.find("ibv_free_device_list", f.free_device_list);
  library.find("ibv_open_device", f.open_device);
  library.find("ibv_close_device", f.close_device);
  library.find("ibv_query_device", f.query_device);
  library.find("ibv_query_port", f.query_port);
  library.find("_ibv_query_gid_table", f.query_gid_table);  // rdma-core 32, 2020
  library.find("ibv_alloc_pd", f.alloc_pd);
  library.find("ibv_dealloc_pd", f.dealloc_pd);
  library.find("ibv_reg_mr", f.reg_mr);
  library.find("ibv_reg_mr_iova2", f.reg_mr_iova2);
  library.find_optional("ibv_reg_dmabuf_mr", f.reg_dmabuf_mr);
  library.find("ibv_dereg_mr", f.dereg_mr);
  library.find("ibv_create_comp_channel", f.create_comp_channel);
  library.find("ibv_destroy_comp_channel", f.destroy_comp_channel);
  library.find("ibv_create_cq", f.create_cq);
  library.find("ibv_destroy_cq", f.destroy_cq);
  library.find("ibv_get_cq_event", f.get_cq_event);
  library.find("ibv_ack_cq_events", f.ack_cq_events);
  library.find("ibv_create_qp", f.create_qp);
  library.find("ibv_modify_qp", f.modify_qp);
  library.find("ibv_destroy_qp", f.destroy_qp);
  library.find("ibv_get_async_event", f.get_async_event);
  library.find("ibv_ack_async_event", f.ack_async_event);
  library.find("ibv_wc_status_str", f.wc_status_str);
  library.find("ibv_event_type_str", f.event_type_str);
  library.find("ibv_fork_init", f.fork_init);
  library.find_optional("ibv_is_fork_initialized", f.is_fork_initialized);
  // ibv_fork_init() takes the pages away from children even where the OS copies them.
  constexpr int kForkUnneeded = 2;  // enum ibv_fork_status
  const bool copies_on_fork =
      f.is_fork_initialized != nullptr && f.is_fork_initialized() == kForkUnneeded;
  // Fails once this process has registered memory; then whoever did has decided.
  if (!copies_on_fork) static_cast<void>(f.fork_init());
  return f;
}

void fail_verbs(ErrorKind kind, std::string_view act, std::string_view device, int error_number) {
  fail(kind, "{} on {}: {}", act, device, system_text(error_number));
}

}  // namespace gxp
