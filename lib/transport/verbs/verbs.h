// Ranks with RDMA ports: messages over InfiniBand or RoCE, by libibverbs, which is loaded at run
// time.
//
// Two ranks have one or more reliable connections (queue pairs), the lanes of their link. A short
// message is sent into a receive slot that was posted in advance. A long one is announced in a
// slot, and its data go by RDMA write from the user's memory into the user's memory, over all
// lanes, as soon as the receiver has granted a place (verbs_receiver.h). What the queues can hold
// is granted by the receiver too, so no queue overflows and no receiver is ever found not ready.
//
// RDMA packets carry no proof of who sent them. This transport is therefore used only if
// comm.protect is "none"; keys and addresses go over the authenticated store. A rank that ends says
// so over its lanes, or its store's connection does; a lost host or cable is detected by senders
// within about 4 s, and by ranks that only wait at their deadline. A rank whose operation has
// failed cuts the connections over which devices could still touch users' memory.
#pragma once

#include <memory>

#include "lib/transport/context.h"
#include "lib/transport/link.h"
#include "lib/transport/row.h"

namespace gxp {

// Fills VerbsContext::offers. All ranks call it, after their hosts are known.
void survey_verbs(TransportContext& context);
Reach verbs_reaches(const TransportContext& context, int a, int b);
// All ranks call it. Errors: kPeer; kDevice and kUnavailable, with the device and a remedy.
std::unique_ptr<LinkGroup> connect_verbs(const TransportContext& context, const JoinedPairs& joins);

}  // namespace gxp
