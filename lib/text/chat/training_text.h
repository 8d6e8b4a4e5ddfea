// A conversation as the text that is trained on, and which part of it counts.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "lib/text/byte_span.h"
#include "lib/text/chat/chat_template.h"
#include "lib/text/chat/conversation.h"

namespace gxp {

struct TrainingText {
  std::string text;
  std::vector<ByteSpan> trained;  // in order; none is empty, none overlap
};

// The rendering of all messages. Where the template has {% generation %} tags, they say what counts;
// elsewhere find_prefix_spans() does, or else find_loop_spans().
// kCorrupt, naming `where`: the template refuses the conversation, does not know a role, or has no
// place for its tools; nothing would count; or which part counts cannot be told.
TrainingText render_for_training(const ChatTemplate& chat, const Conversation& conversation,
                                 const std::string& where);

// For each token, by its bytes of the text: 1 if they overlap a trained span, else 0. A token of no
// bytes counts within a span, as in transformers.
std::vector<uint8_t> trained_of(std::span<const ByteSpan> tokens,
                                std::span<const ByteSpan> trained);

}  // namespace gxp
