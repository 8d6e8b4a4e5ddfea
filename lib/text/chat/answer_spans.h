// Which part of a conversation's rendering is the assistant's, where the template has no
// {% generation %} tags: two ways, which agree where both apply. A span has the text of an answer and
// what the template puts behind it, above all the token that ends it; that of the first message has
// also what is before it.
#pragma once

#include <optional>
#include <vector>

#include "lib/text/byte_span.h"
#include "lib/text/chat/chat_template.h"
#include "lib/text/chat/conversation.h"

namespace gxp {

// Of each message that counts: from the end of the rendering of what comes before it, with a
// generation prompt, to the end of the rendering up to it. None: these are not how the whole
// rendering begins, or the template refuses a part of the conversation.
// Cost: two renderings for each message that counts.
std::optional<std::vector<ByteSpan>> find_prefix_spans(const ChatTemplate& chat,
                                                       const Conversation& conversation,
                                                       const ChatRendering& rendering);

// Of each message that counts: what the template's loop over the messages prints for it, without the
// generation prompt that it begins with; the last one goes to the end. For templates that write a
// message in another way if it is the last one, which leave out earlier reasoning or move a system's
// text.
// kCorrupt: the message is not printed in one place, its text changes what is printed elsewhere,
// that of another message is printed with it, or it does not begin as the generation prompt does.
// Cost: four renderings for each message that counts.
std::vector<ByteSpan> find_loop_spans(const ChatTemplate& chat, const Conversation& conversation,
                                      const ChatRendering& rendering);

}  // namespace gxp
